package quotaflow;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.slf4j.LoggerFactory;

/** Runs one scenario, named by its argument, and prints counts as `name value` lines. */
public final class RecordSenderCheck {
    private static final int PUSHES = 10_000;
    private static final int THREADS = 4;
    private static final int TICKS = 300;
    private static final int PER_TICK = 250;
    private static final long TICK_NS = 10_000_000;

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "headers" -> longClientIds();
            case "building" -> buildingThrows();
            case "sending" -> sendingThrows();
            case "unbuildable" -> noProducer();
            case "losses" -> lossRecordThrows();
            case "closing" -> closesWhileBuilding();
            case "unsettled" -> closesWithRecordsOnTheirWay();
            case "rate" -> manyLines(arguments[1]);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    /** One-byte pushes with a client id of 32 KB, of which no record can be delivered. */
    private static void longClientIds() throws Exception {
        TelemetryReceiver receiver = new TelemetryReceiver();
        receiver.configure(Map.of(
            "node.id", 1,
            TelemetryReceiver.PREFIX + "bootstrap.servers", "127.0.0.1:1",
            TelemetryReceiver.PREFIX + "producer.max.block.ms", 60_000));
        ClientTelemetryExporter exporter = receiver.clientTelemetryExporter();
        String clientId = "c".repeat(32 << 10);
        long before = heap();
        for (int push = 0; push < PUSHES; push++) {
            exporter.exportMetrics(context(clientId), payload());
        }
        print("grown", heap() - before);
        exporter.exportMetrics(context(clientId), payload()); // keeps it reachable until here
    }

    private static void buildingThrows() {
        RecordSender sender = new RecordSender("Pushes", 10, 1_000, RecordSenderCheck::delivering);
        List<Supplier<ProducerRecord<byte[], byte[]>>> broken = List.of(
            () -> { throw new IllegalStateException("no record"); },
            () -> { throw new NoClassDefFoundError("no class"); },
            () -> null);
        for (int push = 0; push < PUSHES; push++) {
            sender.offer(() -> 500, broken.get(push % broken.size()));
            sender.offer(() -> { throw new NullPointerException("no payload"); }, RecordSenderCheck::push);
        }
        int memoryErrors = 0;
        for (int push = 0; push < 10; push++) {
            try {
                sender.offer(() -> 500, () -> { throw new OutOfMemoryError("made up"); });
            } catch (OutOfMemoryError error) {
                memoryErrors++;
            }
        }
        print("memory_errors", memoryErrors);
        sender.offer(() -> 1, RecordSenderCheck::push);
        print(sender);
    }

    private static void sendingThrows() throws Exception {
        List<Throwable> errors = List.of(
            new IllegalStateException("a state"), new NoClassDefFoundError("a class"), new OutOfMemoryError("made up"));
        RecordSender sender = new RecordSender("Pushes", 100, 1 << 20, () -> throwing(errors.iterator()));
        sender.start();
        for (int push = 0; push < errors.size(); push++) {
            sender.offer(() -> 1, RecordSenderCheck::push);
        }
        await(() -> sender.getFailed() == errors.size());
        senders().forEach(Thread::interrupt);
        sender.offer(() -> 1, RecordSenderCheck::push);
        await(() -> sender.getSent() == 1);
        print(sender);
    }

    /** All is offered before the thread starts, so that it sleeps for one reason: it could build nothing. */
    private static void noProducer() throws Exception {
        int[] built = {0};
        RecordSender sender = new RecordSender("Pushes", 10, 1 << 20, () -> {
            built[0]++;
            throw new IllegalStateException("no producer");
        });
        for (int push = 0; push < 100; push++) {
            sender.offer(() -> 1, RecordSenderCheck::push);
        }
        sender.start();
        await(() -> senders().anyMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING));
        print("built", built[0]);
        sender.close();
        print(sender);
    }

    /** A record of losses that cannot be made, which the next ones must not wait for. */
    private static void lossRecordThrows() throws Exception {
        AtomicInteger made = new AtomicInteger();
        RecordSender sender = new RecordSender("Pushes", 1, 1 << 20, RecordSenderCheck::delivering);
        sender.recordLosses(lost -> {
            if (made.incrementAndGet() == 1) {
                throw new NoClassDefFoundError("no class");
            }
            return push();
        });
        sender.offer(() -> 1, RecordSenderCheck::push);
        sender.offer(() -> 1, RecordSenderCheck::push);
        sender.start();
        await(() -> made.get() == 2);
        print("made", made.get());
        print(sender);
    }

    /** A caller that came before the end, and whose record is built after it. */
    private static void closesWhileBuilding() {
        RecordSender sender = new RecordSender("Pushes", 10, 1 << 20, RecordSenderCheck::delivering);
        sender.start();
        sender.offer(() -> 1, () -> {
            sender.close();
            return push();
        });
        sender.offer(() -> 1, RecordSenderCheck::push);
        print(sender);
    }

    /** A producer that fails what is on its way when it is closed. */
    private static void closesWithRecordsOnTheirWay() throws Exception {
        MockProducer<byte[], byte[]> producer =
            new MockProducer<>(false, null, new ByteArraySerializer(), new ByteArraySerializer()) {
                @Override
                public void close(Duration timeout) {
                    while (errorNext(new TimeoutException("closed"))) { }
                }
            };
        RecordSender sender = new RecordSender("Pushes", 10, 1 << 20, () -> producer);
        sender.start();
        sender.offer(() -> 1, RecordSenderCheck::push);
        await(() -> producer.history().size() == 1);
        sender.close();
        Field logged = RecordSender.class.getDeclaredField("loggedLosses");
        logged.setAccessible(true);
        print(sender);
        print("logged", logged.getLong(sender));
    }

    /** 100,000 lines/s of 1 kB by four threads: to a topic that is there, that is gone, or until the JVM ends. */
    private static void manyLines(String topic) throws Exception {
        RecordSender sender = new RecordSender("Lines", 10_000, 1L << 24, () -> taking(topic.equals("gone")));
        byte[] line = new byte[1_000];
        LoggerFactory.getLogger(RecordSenderCheck.class).warn("as in a broker, which logs long before");
        long before = heap();
        sender.start();
        long[][] waits = new long[THREADS][TICKS * PER_TICK];
        Thread[] callers = new Thread[THREADS];
        long start = System.nanoTime();
        for (int number = 0; number < THREADS; number++) {
            long[] own = waits[number];
            callers[number] = new Thread(() -> {
                for (int call = 0; call < own.length; call++) {
                    long due = start + call / PER_TICK * TICK_NS;
                    while (call % PER_TICK == 0 && System.nanoTime() < due) {
                        LockSupport.parkNanos(due - System.nanoTime());
                    }
                    long begun = System.nanoTime();
                    sender.offer(() -> line.length, () -> new ProducerRecord<>("t", null, line.clone()));
                    own[call] = System.nanoTime() - begun;
                }
            });
            callers[number].start();
        }
        if (topic.equals("ending")) {
            Thread.sleep(TICKS * TICK_NS / 2_000_000);
            sender.close();
        }
        for (Thread caller : callers) {
            caller.join();
        }
        long took = System.nanoTime() - start;
        print("grown", heap() - before - 8L * THREADS * TICKS * PER_TICK);
        sender.close();
        await(() -> sender.getQueueSize() == 0);
        print(sender);
        long[] all = Arrays.stream(waits).flatMapToLong(Arrays::stream).sorted().toArray();
        print("per_s", all.length * 1_000_000_000L / took);
        print("p50_ns", all[all.length / 2]);
        print("p99_ns", all[all.length * 99 / 100]);
    }

    /** A producer that takes each record at once, or whose topic nobody has. */
    @SuppressWarnings("unchecked")
    private static Producer<byte[], byte[]> taking(boolean isGone) {
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
            RecordSenderCheck.class.getClassLoader(), new Class<?>[] {Producer.class},
            (proxy, method, given) -> {
                if (method.getName().equals("send")) {
                    if (isGone) {
                        Thread.sleep(5);
                        throw new TimeoutException("no topic");
                    }
                    ((Callback) given[1]).onCompletion(null, null);
                }
                return null;
            });
    }

    private static Stream<Thread> senders() {
        return Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("quotaflow-sender"));
    }

    private static Producer<byte[], byte[]> throwing(java.util.Iterator<Throwable> errors) {
        return new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer()) {
            @Override
            public synchronized Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> push, Callback callback) {
                if (errors.hasNext()) {
                    Throwable error = errors.next();
                    if (error instanceof Error fatal) {
                        throw fatal;
                    }
                    throw (RuntimeException) error;
                }
                return super.send(push, callback);
            }
        };
    }

    private static Producer<byte[], byte[]> delivering() {
        return new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> push() {
        return new ProducerRecord<>("t", new byte[1], new byte[1]);
    }

    private static ClientTelemetryContext context(String clientId) {
        AuthorizableRequestContext request = (AuthorizableRequestContext) Proxy.newProxyInstance(
            RecordSenderCheck.class.getClassLoader(), new Class<?>[] {AuthorizableRequestContext.class},
            (proxy, method, none) -> switch (method.getName()) {
                case "clientId" -> clientId;
                case "principal" -> KafkaPrincipal.ANONYMOUS;
                case "clientAddress" -> InetAddress.getLoopbackAddress();
                case "listenerName" -> "EXTERNAL";
                case "securityProtocol" -> SecurityProtocol.PLAINTEXT;
                default -> 1;
            });
        return (ClientTelemetryContext) Proxy.newProxyInstance(
            RecordSenderCheck.class.getClassLoader(), new Class<?>[] {ClientTelemetryContext.class},
            (proxy, method, none) -> method.getName().equals("pushIntervalMs") ? (Object) 1000 : request);
    }

    private static ClientTelemetryPayload payload() {
        return (ClientTelemetryPayload) Proxy.newProxyInstance(
            RecordSenderCheck.class.getClassLoader(), new Class<?>[] {ClientTelemetryPayload.class},
            (proxy, method, none) -> switch (method.getName()) {
                case "clientInstanceId" -> Uuid.ONE_UUID;
                case "isTerminating" -> false;
                case "contentType" -> "OTLP";
                default -> ByteBuffer.wrap(new byte[1]);
            });
    }

    private static long heap() throws InterruptedException {
        for (int times = 0; times < 3; times++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    static void await(Supplier<Boolean> condition) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.get() && System.nanoTime() < end) {
            Thread.sleep(10);
        }
    }

    private static void print(RecordSender sender) {
        print("received", sender.getReceived());
        print("sent", sender.getSent());
        print("dropped", sender.getDropped());
        print("failed", sender.getFailed());
        print("queued", sender.getQueueSize());
    }

    private static void print(String name, long value) {
        System.out.println(name + " " + value);
    }
}
