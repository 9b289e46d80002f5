import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.stats.CumulativeSum;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/** A shop whose clients push metrics of its own beside theirs (KIP-1076), one part with Streams. */
public final class Application {
    private static final Duration LEAVE = Duration.ofSeconds(5);
    private static final int PUSHES = 3;
    private static final AtomicLong read = new AtomicLong();
    // The value of a registered metric is read once per push, and by nobody else.
    private static final AtomicInteger produced = new AtomicInteger();
    private static final AtomicInteger consumed = new AtomicInteger();

    private Application() { }

    /** Arguments: file of a login, application id, topic to read, topic to write. */
    public static void main(String[] args) throws IOException {
        Properties login = new Properties();
        try (InputStream file = new FileInputStream(args[0])) {
            login.load(file);
        }
        KafkaStreams streams = streams(login, args[1], args[2], args[3]);
        try (KafkaProducer<byte[], byte[]> producer = producer(login, args[1]);
                KafkaConsumer<byte[], byte[]> consumer = consumer(login, args[1])) {
            streams.start();
            consumer.subscribe(List.of(args[2]));
            long there = records(consumer, args[2]);
            work(producer, consumer, args[3], () -> read.get() < there);
            int sent = produced.get() + PUSHES;
            int received = consumed.get() + PUSHES;
            work(producer, consumer, args[3],
                () -> produced.get() < sent || consumed.get() < received);
        } finally {
            streams.close(LEAVE);
        }
    }

    private static void work(
            KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
            String topic, BooleanSupplier isToDo) {
        while (isToDo.getAsBoolean()) {
            producer.send(new ProducerRecord<>(topic, new byte[10]));
            consumer.poll(Duration.ofMillis(200));
        }
    }

    private static long records(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
            .map(of -> new TopicPartition(topic, of.partition())).toList();
        return consumer.endOffsets(partitions).values().stream().mapToLong(end -> end).sum();
    }

    private static KafkaStreams streams(Properties login, String name, String from, String into) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(from, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .peek((key, value) -> read.incrementAndGet())
            .to(into, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        Properties properties = with(login, Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, name,
            "auto.offset.reset", "earliest"));
        return new KafkaStreams(builder.build(), properties);
    }

    private static KafkaProducer<byte[], byte[]> producer(Properties login, String name) {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
            with(login, Map.of("client.id", name + "-producer")),
            new ByteArraySerializer(), new ByteArraySerializer());
        MetricConfig config = new MetricConfig();
        CumulativeSum sold = new CumulativeSum();
        for (int price : new int[] {3, 4, 5}) {
            sold.record(config, price, Time.SYSTEM.milliseconds());
        }
        Gauge<Integer> carts = (c, now) -> {
            produced.incrementAndGet();
            return 7;
        };
        Map<String, String> tags = Map.of("branch-name", "lyon");
        producer.registerMetricForSubscription(metric("sold-total", tags, sold, config));
        producer.registerMetricForSubscription(metric("open-carts", tags, carts, config));
        producer.registerMetricForSubscription(
            metric("state", tags, (Gauge<String>) (c, now) -> "open", config));
        return producer;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Properties login, String name) {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            with(login, Map.of("client.id", name + "-consumer", "group.id", name + "-readers")),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Measurable load = (config, now) -> {
            consumed.incrementAndGet();
            return 0.25;
        };
        consumer.registerMetricForSubscription(metric("load", Map.of(), load, new MetricConfig()));
        return consumer;
    }

    private static KafkaMetric metric(
            String name, Map<String, String> tags, MetricValueProvider<?> value,
            MetricConfig config) {
        MetricName named = new MetricName(name, "shop-metrics", "", tags);
        return new KafkaMetric(new Object(), named, value, config, Time.SYSTEM);
    }

    private static Properties with(Properties login, Map<String, String> others) {
        Properties both = new Properties();
        both.putAll(login);
        both.putAll(others);
        return both;
    }
}
