import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SimpleRate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * What Kafka's own classes measure. Commands, one a line:
 *
 * <pre>
 * begin simple_rate NUM_WINDOWS WINDOW_MS           SimpleRate
 * begin rate NUM_WINDOWS WINDOW_MS                  Rate
 * begin throttle_time NUM_WINDOWS WINDOW_MS QUOTA   QuotaUtils.throttleTime of the last record
 * begin token_bucket NUM_WINDOWS WINDOW_MS QUOTA    TokenBucket
 * begin replication_quota NUM_WINDOWS WINDOW_MS     the broker's ReplicationQuotaManager
 * record VALUE TIME_MS
 * measure TIME_MS                                   keeps one answer
 * answer                                            prints the answers kept, one a line
 * </pre>
 *
 * Nothing is printed before "answer", so a caller may write everything and then read everything.
 */
public final class Oracle {
    private interface Subject {
        void record(double value, long timeMs);

        double measure(long timeMs);
    }

    private record Stat(MeasurableStat stat, MetricConfig config) implements Subject {
        @Override
        public void record(double value, long timeMs) {
            stat.record(config, value, timeMs);
        }

        @Override
        public double measure(long timeMs) {
            return stat.measure(config, timeMs);
        }
    }

    /** A sensor as brokers keep for a quota, and what they answer to a client that is over it. */
    private static final class ThrottleTime implements Subject {
        private final Sensor sensor;
        private long lastMs = 0;

        ThrottleTime(MetricConfig config) {
            Metrics metrics = new Metrics();
            sensor = metrics.sensor("quota", config);
            sensor.add(metrics.metricName("rate", "quota"), new Rate());
        }

        @Override
        public void record(double value, long timeMs) {
            lastMs = 0;
            try {
                sensor.record(value, timeMs, true);
            } catch (QuotaViolationException e) {
                lastMs = QuotaUtils.throttleTime(e, timeMs);
            }
        }

        @Override
        public double measure(long timeMs) {
            return lastMs;
        }
    }

    /** The broker's class with a clock of ours; its rate is read from the metric it registers. */
    private static final class ReplicationQuota implements Subject {
        private final SetTime time = new SetTime();
        private final Metrics metrics = new Metrics(new MetricConfig(), List.of(), time);
        private final kafka.server.ReplicationQuotaManager quota;

        ReplicationQuota(int windows, long windowMs) {
            if (windowMs % 1_000 != 0) {
                throw new IllegalArgumentException("whole seconds only, got ms: " + windowMs);
            }
            quota = new kafka.server.ReplicationQuotaManager(
                new ReplicationQuotaManagerConfig(windows, (int) (windowMs / 1_000)),
                metrics, QuotaType.LEADER_REPLICATION, time);
            quota.updateQuota(Quota.upperBound(Long.MAX_VALUE));
        }

        @Override
        public void record(double value, long timeMs) {
            time.nowMs = timeMs;
            quota.record((long) value);
        }

        @Override
        public double measure(long timeMs) {
            time.nowMs = timeMs;
            quota.isQuotaExceeded(); // makes the sensor where nothing was recorded yet
            KafkaMetric rate = metrics.metrics().values().stream()
                .filter(metric -> metric.metricName().name().equals("byte-rate"))
                .findFirst().orElseThrow();
            return (double) rate.metricValue();
        }
    }

    private static final class SetTime implements Time {
        private long nowMs;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(nowMs);
        }

        @Override
        public void sleep(long ms) {
            nowMs += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static Subject begin(String[] words) {
        int windows = Integer.parseInt(words[2]);
        long windowMs = Long.parseLong(words[3]);
        MetricConfig config =
            new MetricConfig().samples(windows).timeWindow(windowMs, TimeUnit.MILLISECONDS);
        return switch (words[1]) {
            case "simple_rate" -> new Stat(new SimpleRate(), config);
            case "rate" -> new Stat(new Rate(), config);
            case "throttle_time" -> new ThrottleTime(
                config.quota(Quota.upperBound(Double.parseDouble(words[4]))));
            case "token_bucket" -> new Stat(
                new TokenBucket(), config.quota(Quota.upperBound(Double.parseDouble(words[4]))));
            case "replication_quota" -> new ReplicationQuota(windows, windowMs);
            default -> throw new IllegalArgumentException("no such subject: " + words[1]);
        };
    }

    public static void main(String[] args) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        Subject subject = null;
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "begin" -> subject = begin(words);
                case "record" ->
                    subject.record(Double.parseDouble(words[1]), Long.parseLong(words[2]));
                case "measure" ->
                    answers.append(subject.measure(Long.parseLong(words[1]))).append('\n');
                case "answer" -> {
                    System.out.print(answers);
                    System.out.flush();
                    answers.setLength(0);
                }
                default -> throw new IllegalArgumentException("no such command: " + line);
            }
        }
    }
}
