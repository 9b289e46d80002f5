package quotaflow;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Runs one scenario, named by its first argument, and prints what came of it. */
public final class RequestLogCheck {
    private static final int LINES = 200_000;
    private static final int QUEUED = 1_000;

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "lines" -> lines(arguments);
            case "settings" -> settings();
            case "blocked" -> blocked();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    /** Other arguments are KEY=VALUE; each line of the input is a message. Of n lines the n-th is kept. */
    private static void lines(String[] arguments) throws Exception {
        Map<String, String> properties = required();
        for (int i = 1; i < arguments.length; i++) {
            int at = arguments[i].indexOf('=');
            properties.put(arguments[i].substring(0, at), arguments[i].substring(at + 1));
        }
        int[] drawn = {0};
        RequestLines lines = new RequestLines(
            new RequestLogSettings(properties), 3, n -> ++drawn[0] % n);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String message;
        while ((message = input.readLine()) != null) {
            System.out.println(lines.envelope(message, 1_795_168_800_134L));
        }
        System.out.printf("own %s%nsecret %s%nfiltered %s%nsampled %s%nunreadable %s%n",
            lines.own, lines.secret, lines.filtered, lines.sampled, lines.unreadable);
    }

    /** Each line of the input is one KEY=VALUE beside what is required; prints why it is refused. */
    private static void settings() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String pair;
        while ((pair = input.readLine()) != null) {
            Map<String, String> properties = required();
            properties.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
            try {
                new RequestLogSettings(properties);
                System.out.println("taken");
            } catch (IllegalArgumentException error) {
                System.out.println(error.getMessage());
            }
        }
    }

    private static Map<String, String> required() {
        return new HashMap<>(Map.of("bootstrap.servers", "127.0.0.1:1", "own.principal", "User:shipper"));
    }

    /** A producer that hangs until all callers have come: did one wait for it, this would never end. */
    private static void blocked() throws Exception {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        MockProducer<byte[], byte[]> producer =
            new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer()) {
                @Override
                public synchronized Future<RecordMetadata> send(
                        ProducerRecord<byte[], byte[]> data, Callback callback) {
                    try {
                        hangs.countDown();
                        gate.await();
                    } catch (InterruptedException error) {
                        Thread.currentThread().interrupt();
                    }
                    return super.send(data, callback);
                }
            };
        RequestLines lines = new RequestLines(new RequestLogSettings(required()), 3, n -> 0);
        RecordSender sender = new RecordSender("Request log", QUEUED, 1L << 24, () -> producer);
        sender.recordLosses(lost -> record(lines.losses(lost, 1)));
        sender.start();
        for (int line = 0; line < LINES; line++) {
            sender.offer(() -> 1_000, () -> record("x".repeat(1_000)));
            hangs.await(); // the first line has left the queue by then
        }
        long dropped = sender.getDropped();
        String loss = "{\"ts\":1,\"broker\":3,\"lost\":" + dropped + "}";
        gate.countDown();
        RecordSenderCheck.await(() -> producer.history().size() == 1 + QUEUED + 1);
        System.out.println("lost_records " + producer.history().stream()
            .filter(each -> loss.equals(new String(each.value(), StandardCharsets.UTF_8))).count());
        System.out.println("lines " + (sender.getSent() + dropped));
        System.out.println("sent " + sender.getSent());
        System.out.println("failed " + sender.getFailed());
    }

    private static ProducerRecord<byte[], byte[]> record(String text) {
        return new ProducerRecord<>("t", null, text.getBytes(StandardCharsets.UTF_8));
    }
}
