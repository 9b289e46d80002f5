import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.network.CipherInformation;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.telemetry.internals.KafkaMetricsCollector;
import org.apache.kafka.common.telemetry.internals.MetricKeyable;
import org.apache.kafka.common.telemetry.internals.MetricNamingStrategy;
import org.apache.kafka.common.telemetry.internals.MetricsEmitter;
import org.apache.kafka.common.telemetry.internals.SinglePointMetric;
import org.apache.kafka.common.telemetry.internals.TelemetryMetricNamingConvention;

/**
 * Every metric that Kafka's Java clients would push, one a line: name, kind, Kafka's description.
 *
 * <p>The clients are real, and have no cluster: what they register only on traffic is read from
 * the same objects by reflection. Names and kinds are made by the code that pushes.
 */
public final class ClientMetrics {
    private static final MetricNamingStrategy<MetricName> NAMES =
            TelemetryMetricNamingConvention.getClientTelemetryMetricNamingStrategy(
                    "org.apache.kafka");
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final Queue<KafkaMetric> REGISTERED = new ConcurrentLinkedQueue<>();

    /** Keeps what the clients register; they make it by the name in their config. */
    public static final class Register implements MetricsReporter {
        @Override
        public void configure(Map<String, ?> configs) {}

        @Override
        public void init(List<KafkaMetric> metrics) {
            REGISTERED.addAll(metrics);
        }

        @Override
        public void metricChange(KafkaMetric metric) {
            REGISTERED.add(metric);
        }

        @Override
        public void metricRemoval(KafkaMetric metric) {}

        @Override
        public void close() {}
    }

    public static void main(String[] arguments)
            throws ReflectiveOperationException, InterruptedException {
        producer();
        consumer("classic");
        consumer("consumer");
        shareConsumer();
        connection(field(Admin.create(config(Map.of())), "client"));
        // The background threads of the newer consumers register what they measure when they begin.
        awaitQuiet();
        print();
        // Nobody answers at the bootstrap address: closing the clients would wait for that.
        Runtime.getRuntime().halt(0);
    }

    private static void producer() throws ReflectiveOperationException {
        var serializer = new StringSerializer();
        Map<String, Object> config = config(Map.of("transactional.id", "t"));
        var producer = new KafkaProducer<>(config, serializer, serializer);
        Object sender = field(producer, "sender");
        call(field(sender, "sensors"), "maybeRegisterTopicMetrics", "t");
        connection(field(sender, "client"));
    }

    private static void consumer(String protocol) throws ReflectiveOperationException {
        var deserializer = new StringDeserializer();
        Map<String, Object> config = config(Map.of("group.id", "g", "group.protocol", protocol));
        var wrapper = new KafkaConsumer<>(config, deserializer, deserializer);
        Object consumer = field(wrapper, "delegate");
        boolean isClassic = protocol.equals("classic");
        if (isClassic) {
            connection(field(field(consumer, "client"), "client"));
        }
        Object fetcher = field(consumer, isClassic ? "fetcher" : "fetchCollector");
        Object fetches = field(fetcher, "metricsManager");
        Object subscriptions = field(consumer, "subscriptions");
        call(subscriptions, "assignFromUser", Set.of(PARTITION));
        call(fetches, "maybeUpdateAssignment", subscriptions);
        call(fetches, "recordBytesFetched", "t", 1);
        call(fetches, "recordRecordsFetched", "t", 1);
        call(fetches, "recordPartitionLag", PARTITION, 1L);
        call(fetches, "recordPartitionLead", PARTITION, 1L);
    }

    private static void shareConsumer() {
        var deserializer = new StringDeserializer();
        new KafkaShareConsumer<>(config(Map.of("group.id", "g")), deserializer, deserializer);
    }

    /** What a connection brings, a TLS one too. */
    private static void connection(Object networkClient) throws ReflectiveOperationException {
        Object sensors = field(field(networkClient, "selector"), "sensors");
        call(sensors, "maybeRegisterConnectionMetrics", "1");
        call(field(sensors, "connectionsByCipher"), "increment", new CipherInformation("c", "p"));
    }

    private static Map<String, Object> config(Map<String, Object> more) {
        var config = new HashMap<String, Object>(more);
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("metric.reporters", Register.class.getName());
        config.put("enable.metrics.push", false);
        return config;
    }

    private static void awaitQuiet() throws InterruptedException {
        int before;
        do {
            before = REGISTERED.size();
            Thread.sleep(1_000);
        } while (REGISTERED.size() > before);
    }

    private static void print() {
        var collector = new KafkaMetricsCollector(NAMES, Set.of());
        var descriptions = new HashMap<String, String>();
        for (KafkaMetric metric : REGISTERED) {
            collector.metricChange(metric);
            MetricName name = metric.metricName();
            descriptions.put(NAMES.metricKey(name).name(), name.description());
        }
        collector.collect(new MetricsEmitter() {
            @Override
            public boolean shouldEmitMetric(MetricKeyable key) {
                return true;
            }

            @Override
            public boolean shouldEmitDeltaMetrics() {
                return true;
            }

            @Override
            public boolean emitMetric(SinglePointMetric point) {
                String kind = point.builder().getDataCase().name().toLowerCase(Locale.ROOT);
                String name = point.key().name();
                System.out.println(String.join("\t", name, kind, descriptions.get(name)));
                return true;
            }
        });
        System.out.flush();
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException {
        for (Class<?> in = owner.getClass(); in != null; in = in.getSuperclass()) {
            for (Field field : in.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(owner);
                }
            }
        }
        throw new NoSuchFieldException(owner.getClass() + "." + name);
    }

    private static void call(Object owner, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Method method : owner.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                method.invoke(owner, arguments);
                return;
            }
        }
        throw new NoSuchMethodException(owner.getClass() + "." + name + Arrays.toString(arguments));
    }
}
