package quotaflow;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;

/**
 * Sends every telemetry push a broker accepts (KIP-714) to a topic: the OTLP bytes as value, the
 * client instance id as key, who pushed in the record headers.
 *
 * <p>A request thread only copies the push into a queue with a bound on its heap, or counts it as dropped
 * when the queue is full; one daemon thread owns the producer. Nothing here can slow a broker or fail a
 * push: a client whose push fails may never push again.
 */
public final class TelemetryReceiver implements MetricsReporter, ClientTelemetryExporterProvider {
    static final String PREFIX = "quotaflow.telemetry.";
    private static final String PRODUCER = "producer.";
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("topic", Type.STRING, "client_telemetry", new ConfigDef.NonEmptyString(),
            Importance.HIGH, "Topic the pushes go to.")
        .define("bootstrap.servers", Type.LIST, ConfigDef.NO_DEFAULT_VALUE,
            ConfigDef.ValidList.anyNonDuplicateValues(false, false), Importance.HIGH,
            "Brokers of the cluster that has the topic; it may be this one.")
        .define("queue.max.records", Type.INT, 10_000, Range.atLeast(1), Importance.LOW,
            "Pushes that may wait for the producer.")
        .define("queue.max.bytes", Type.LONG, 16L << 20, Range.atLeast(1), Importance.LOW,
            "Bytes of heap that pushes may take while they wait for the producer.");
    private static final String BEAN = "TelemetryReceiver";

    private final Map<String, Object> producerConfig = new HashMap<>();
    private String topic;
    private String brokerId;
    private RecordSender sender;
    private boolean isStarted;

    /** Takes quotaflow.telemetry.*; a value that cannot be right stops the broker's start. */
    @Override
    public void configure(Map<String, ?> configs) {
        Map<String, Object> own = new HashMap<>();
        brokerId = String.valueOf(configs.get("node.id"));
        setProducerDefaults();
        configs.forEach((key, value) -> {
            if (key.startsWith(PREFIX + PRODUCER)) {
                producerConfig.put(key.substring((PREFIX + PRODUCER).length()), value);
            } else if (key.startsWith(PREFIX)) {
                own.put(key.substring(PREFIX.length()), value);
            }
        });
        try {
            applyConfig(own);
        } catch (ConfigException e) {
            throw new ConfigException("quotaflow.TelemetryReceiver, properties " + PREFIX + "*: " + e.getMessage());
        }
    }

    private void setProducerDefaults() {
        producerConfig.put("client.id", "quotaflow-telemetry-" + brokerId);
        producerConfig.put("enable.metrics.push", "false"); // it would push to itself
        producerConfig.put("metric.reporters", "");
        // The pipeline counts a push once anyway; a watcher should not add producer ids of its own.
        producerConfig.put("enable.idempotence", "false");
        producerConfig.put("acks", "all");
        producerConfig.put("compression.type", "zstd");
        producerConfig.put("linger.ms", "100");
        producerConfig.put("max.block.ms", "5000");
        producerConfig.put("request.timeout.ms", "10000");
        producerConfig.put("delivery.timeout.ms", "30000");
        producerConfig.put("buffer.memory", String.valueOf(16 << 20));
        producerConfig.put("max.request.size", String.valueOf(16 << 20));
    }

    private void applyConfig(Map<String, Object> own) {
        for (String key : own.keySet()) {
            if (!CONFIG.names().contains(key)) {
                throw new ConfigException("unknown " + key + ", known are " + CONFIG.names() + " and " + PRODUCER + "*");
            }
        }
        AbstractConfig config = new AbstractConfig(CONFIG, own, false);
        topic = config.getString("topic");
        producerConfig.put("bootstrap.servers", String.join(",", config.getList("bootstrap.servers")));
        producerConfig.put("key.serializer", ByteArraySerializer.class.getName());
        producerConfig.put("value.serializer", ByteArraySerializer.class.getName());
        new ProducerConfig(producerConfig); // refuses what no producer could be built with
        sender = new RecordSender("Client telemetry",
            config.getInt("queue.max.records"), config.getLong("queue.max.bytes"),
            () -> new KafkaProducer<>(producerConfig));
    }

    /** The broker asks once; from here on the sender runs and JMX shows the counts. */
    @Override
    public synchronized ClientTelemetryExporter clientTelemetryExporter() {
        if (!isStarted) {
            isStarted = true;
            sender.start();
            // A combined node builds reporters twice: the one that makes an exporter is shown.
            JmxBean.show(BEAN, SenderCounts.class, sender);
        }
        return (context, payload) ->
            sender.offer(() -> payload.data().remaining(), () -> toRecord(context, payload));
    }

    private ProducerRecord<byte[], byte[]> toRecord(ClientTelemetryContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data().duplicate();
        byte[] body = new byte[data.remaining()];
        data.get(body);
        String instance = payload.clientInstanceId().toString();
        ProducerRecord<byte[], byte[]> push = new ProducerRecord<>(topic, utf8(instance), body);
        AuthorizableRequestContext request = context.authorizableRequestContext();
        header(push, "client_instance_id", instance);
        header(push, "terminating", payload.isTerminating());
        header(push, "content_type", payload.contentType());
        header(push, "principal", request.principal());
        header(push, "client_id", request.clientId());
        header(push, "client_source_address", request.clientAddress().getHostAddress());
        header(push, "listener", request.listenerName());
        header(push, "security_protocol", request.securityProtocol().name);
        header(push, "request_version", request.requestVersion());
        header(push, "broker_id", brokerId);
        header(push, "push_interval_ms", context.pushIntervalMs());
        if (request instanceof RequestContext connection) {
            header(push, "client_software_name", connection.clientInformation.softwareName());
            header(push, "client_software_version", connection.clientInformation.softwareVersion());
            header(push, "client_source_port", connection.clientPort.orElse(null));
            header(push, "connection_id", connection.connectionId());
        }
        return push;
    }

    private static void header(ProducerRecord<?, ?> push, String name, Object value) {
        push.headers().add(name, value == null ? new byte[0] : utf8(value.toString()));
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Takes two seconds at most. */
    @Override
    public void close() {
        if (sender != null) {
            sender.close();
            JmxBean.hide(BEAN, sender);
        }
    }

    /** Broker metrics are JmxReporter's business. */
    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }
}
