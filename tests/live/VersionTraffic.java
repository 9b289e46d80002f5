import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Clients of one Kafka release: they read, write in a transaction, and push telemetry. */
public final class VersionTraffic {
    private VersionTraffic() { }

    /** Arguments: a file with the properties of a client, a topic of one partition. */
    public static void main(String[] args) throws Exception {
        Properties login = new Properties();
        try (FileReader file = new FileReader(args[0])) {
            login.load(file);
        }
        String topic = args[1];
        try (KafkaProducer<String, String> plain = producer(login, "java-plain", Map.of())) {
            plain.send(new ProducerRecord<>(topic, "k", "v")).get();
        }
        Map<String, Object> transactions = Map.of("transactional.id", "version-tx");
        try (KafkaProducer<String, String> writer = producer(login, "java-tx", transactions);
             KafkaConsumer<String, String> reader = consumer(login)) {
            reader.subscribe(List.of(topic));
            ConsumerRecords<String, String> read = ConsumerRecords.empty();
            for (int i = 0; i < 100 && read.isEmpty(); i++) {
                read = reader.poll(Duration.ofMillis(200));
            }
            TopicPartition partition = new TopicPartition(topic, 0);
            Map<TopicPartition, OffsetAndMetadata> offsets =
                Map.of(partition, new OffsetAndMetadata(reader.position(partition)));
            writer.initTransactions();
            writer.beginTransaction();
            writer.send(new ProducerRecord<>(topic, "k", "in a transaction"));
            writer.sendOffsetsToTransaction(offsets, reader.groupMetadata());
            writer.commitTransaction();
            reader.commitSync(offsets);
            for (int i = 0; i < 20; i++) {
                reader.poll(Duration.ofMillis(200));
            }
        }
    }

    private static KafkaProducer<String, String> producer(
            Properties login, String id, Map<String, Object> others) {
        Properties all = new Properties();
        all.putAll(login);
        all.putAll(others);
        all.put("client.id", id);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(Properties login) {
        Properties all = new Properties();
        all.putAll(login);
        all.put("client.id", "java-reader");
        all.put("client.rack", "az-a");
        all.put("group.id", "version-group");
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }
}
