package quotaflow;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Sends lines of kafka.request.logger to a topic, without a file or another process. Appenders of log4j2 and
 * of reload4j hand them to it.
 *
 * <p>The thread of a request only decides on its line and copies it into a bounded queue, or counts it.
 */
final class RequestLog {
    /** What JMX shows as quotaflow:type=RequestLog; lines since the broker started. */
    public interface Counts extends SenderCounts {
        /** Lines about the shipping of lines, here or from other brokers: by client id and principal. */
        long getOwn();

        /** Lines of APIs that hold credentials. */
        long getSecret();

        /** Lines that apis.* or principals.* leave out. */
        long getFiltered();

        /** Lines that another one stands for. */
        long getSampledOut();

        /** What is no line of a request, as far as this version of the class knows. */
        long getUnreadable();
    }

    private static final String BEAN = "RequestLog";
    private static final String LOGGER = "kafka.request.logger";

    private final RequestLines lines;
    private final RecordSender sender;
    private final Counts counts;
    private final String topic;
    private final byte[] key;

    private RequestLog(RequestLogSettings settings, int brokerId) {
        topic = settings.topic;
        key = utf8(String.valueOf(brokerId));
        lines = new RequestLines(settings, brokerId, n -> ThreadLocalRandom.current().nextInt(n));
        sender = new RecordSender(
            "Request log", settings.maxRecords, settings.maxBytes, () -> new KafkaProducer<>(settings.producer));
        sender.recordLosses(lost -> record(lines.losses(lost, System.currentTimeMillis())));
        counts = new AllCounts(lines, sender);
    }

    /** `config` is the path of a properties file. Throws IllegalArgumentException that says what is wrong. */
    static RequestLog start(String config, String broker) {
        int brokerId;
        try {
            brokerId = Integer.parseInt(broker);
        } catch (NumberFormatException error) {
            brokerId = -1;
        }
        if (brokerId < 0) {
            throw new IllegalArgumentException("broker, the node.id of this broker, is required: not " + broker);
        }
        RequestLog started = new RequestLog(RequestLogSettings.of(config), brokerId);
        started.sender.start();
        JmxBean.show(BEAN, Counts.class, started.counts);
        return started;
    }

    /** Never blocks. Other loggers are left out: the producer's own may come here, too. */
    void append(String logger, long timeMs, String message) {
        if (LOGGER.equals(logger)) {
            String envelope = lines.envelope(message, timeMs);
            if (envelope != null) {
                sender.offer(envelope::length, () -> record(envelope));
            }
        }
    }

    /** Takes two seconds at most. */
    void close() {
        sender.close();
        JmxBean.hide(BEAN, counts);
    }

    private ProducerRecord<byte[], byte[]> record(String envelope) {
        return new ProducerRecord<>(topic, key, utf8(envelope));
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private record AllCounts(RequestLines lines, RecordSender sender) implements Counts {
        @Override
        public long getReceived() {
            return sender.getReceived();
        }

        @Override
        public long getSent() {
            return sender.getSent();
        }

        @Override
        public long getDropped() {
            return sender.getDropped();
        }

        @Override
        public long getFailed() {
            return sender.getFailed();
        }

        @Override
        public int getQueueSize() {
            return sender.getQueueSize();
        }

        @Override
        public long getOwn() {
            return lines.own.sum();
        }

        @Override
        public long getSecret() {
            return lines.secret.sum();
        }

        @Override
        public long getFiltered() {
            return lines.filtered.sum();
        }

        @Override
        public long getSampledOut() {
            return lines.sampled.sum();
        }

        @Override
        public long getUnreadable() {
            return lines.unreadable.sum();
        }
    }
}
