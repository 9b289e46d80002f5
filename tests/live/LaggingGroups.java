import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of several groups, each of which is slowed down in its own way.
 *
 * <p>All read until a byte comes on standard input; each writes a line once it has records. Then
 * each does what is planted. The end of standard input ends all, and so does an error of one.
 */
public final class LaggingGroups {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long LIVES_MS = 2_000;
    private static final String OTHER_TOPIC = "lag-keeps-up";
    private static volatile boolean isPlanted;

    private final String user;
    private final String group;
    private final String way;
    private final int recordMs;
    private final Properties config = new Properties();
    private boolean hasRead;

    private LaggingGroups(String[] words) {
        user = words[0];
        group = words[1];
        way = words[2];
        recordMs = Integer.parseInt(words[3]);
        for (String pair : List.of(words).subList(4, words.length)) {
            config.put(pair.split("=")[0], pair.split("=")[1]);
        }
    }

    /**
     * Each argument is a member: file of its login, group, which is also its topic and client id,
     * way, milliseconds of work for each record, and configs.
     */
    public static void main(String[] args) throws IOException {
        for (String member : args) {
            new Thread(new LaggingGroups(member.split(" "))::run).start();
        }
        while (System.in.read() >= 0) {
            isPlanted = true;
        }
        Runtime.getRuntime().halt(0);
    }

    private void run() {
        try {
            if (way.equals("crashes")) {
                crashAgainAndAgain();
            } else if (way.equals("fences")) {
                fenceAgainAndAgain();
            } else {
                act();
            }
        } catch (IOException | InterruptedException | RuntimeException error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private void act() throws IOException, InterruptedException {
        try (KafkaConsumer<byte[], byte[]> consumer = subscribed()) {
            read(consumer, () -> way.equals("works") || way.equals("waits") || !isPlanted);
            if (way.equals("leaves")) {
                return;
            }
            consumer.commitSync();
            if (way.equals("pauses")) {
                consumer.pause(consumer.assignment());
                read(consumer, () -> true);
            }
            if (way.equals("skips")) {
                consumer.pause(List.of(consumer.assignment().iterator().next()));
                read(consumer, () -> true);
            }
            if (way.equals("moves")) {
                consumer.subscribe(List.of(OTHER_TOPIC));
                read(consumer, () -> true);
            }
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    /** A member that dies without a word, and comes back as another one. */
    private void crashAgainAndAgain() throws IOException, InterruptedException {
        while (!isPlanted) {
            Thread.sleep(POLL.toMillis());
        }
        while (true) {
            KafkaConsumer<byte[], byte[]> consumer = subscribed();
            read(consumer, () -> consumer.assignment().isEmpty());
            long end = System.currentTimeMillis() + LIVES_MS;
            read(consumer, () -> System.currentTimeMillis() < end);
            consumer.close(CloseOptions.groupMembershipOperation(
                CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
        }
    }

    /** A member that takes the place of another one with its group.instance.id, and loses it again. */
    private void fenceAgainAndAgain() throws IOException, InterruptedException {
        while (!isPlanted) {
            Thread.sleep(POLL.toMillis());
        }
        while (true) {
            try (KafkaConsumer<byte[], byte[]> consumer = subscribed()) {
                while (true) {
                    long end = System.currentTimeMillis() + POLL.toMillis();
                    read(consumer, () -> System.currentTimeMillis() < end);
                    consumer.commitSync();
                }
            } catch (CommitFailedException | FencedInstanceIdException fenced) {
                Thread.sleep(LIVES_MS);
            }
        }
    }

    private void read(KafkaConsumer<byte[], byte[]> consumer, BooleanSupplier goesOn)
            throws InterruptedException {
        while (goesOn.getAsBoolean()) {
            for (ConsumerRecord<byte[], byte[]> ignored : consumer.poll(POLL)) {
                if (!hasRead) {
                    hasRead = true;
                    System.out.println(group);
                }
                if (recordMs > 0) {
                    Thread.sleep(recordMs);
                }
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> subscribed() throws IOException {
        Properties all = new Properties();
        try (InputStream file = new FileInputStream(user)) {
            all.load(file);
        }
        all.put("client.id", group);
        all.put("group.id", group);
        all.put("auto.offset.reset", "earliest");
        all.putAll(config);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        // Who waits never fetches: it has its partitions, and reads none of them.
        consumer.subscribe(List.of(group), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                if (way.equals("waits")) {
                    consumer.pause(partitions);
                    System.out.println(group);
                }
            }
        });
        return consumer;
    }
}
