package quotaflow;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntSupplier;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.slf4j.LoggerFactory;

/**
 * A queue bounded in records and in bytes of heap, and the one thread that drains it into a producer.
 *
 * <p>No exception of a record or of the producer ends that thread or keeps bytes reserved: it counts as
 * failed. That thread alone writes to the broker's log, never the caller's.
 */
final class RecordSender implements SenderCounts {
    private static final long SAY_EVERY_MS = 10_000;
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(1);
    /** Objects and array headers beside the bytes: of a record with its place in the queue, of a header. */
    private static final int RECORD_OVERHEAD = 256;
    private static final int HEADER_OVERHEAD = 64;
    /** After an error of the JVM itself, such as a full heap, the next record waits. */
    private static final long PAUSE_MS = 1_000;
    /** A producer that cannot be built writes all its configs to the broker's log each time. */
    private static final long REBUILD_MS = 5_000;
    /** An empty queue is polled so often: to wake a thread would cost callers more than all else here. */
    private static final long IDLE_MS = 20;

    private final LongAdder received = new LongAdder();
    private final LongAdder sent = new LongAdder();
    private final LongAdder dropped = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final AtomicLong queuedBytes = new AtomicLong();
    private final String name;
    private final Thread thread;
    private final BlockingQueue<Entry> queue;
    private final long maxBytes;
    private final Supplier<Producer<byte[], byte[]>> newProducer;
    private LongFunction<ProducerRecord<byte[], byte[]>> lossRecord;
    private Producer<byte[], byte[]> producer;
    private volatile String lastError = "";
    private volatile boolean isClosed;
    /** Losses that the log has, that the topic has, and that are on their way to it. */
    private long loggedLosses;
    private volatile long recordedLosses;
    private volatile boolean isLossOnItsWay;
    private long nextLogMs = System.nanoTime() / 1_000_000;
    private long nextRecordMs = nextLogMs;

    /** A record in the queue, and the bytes that are reserved for it. */
    private record Entry(ProducerRecord<byte[], byte[]> data, long bytes) { }

    /** `name` is what the records are, for the broker's log. */
    RecordSender(String name, int maxRecords, long maxBytes, Supplier<Producer<byte[], byte[]>> newProducer) {
        this.name = name;
        this.queue = new LinkedBlockingQueue<>(maxRecords);
        this.maxBytes = maxBytes;
        this.newProducer = newProducer;
        this.thread = new Thread(this::sendUntilClosed, "quotaflow-sender " + name);
    }

    /** From now on the topic gets a record for losses, made of their number; call it before start. */
    void recordLosses(LongFunction<ProducerRecord<byte[], byte[]>> made) {
        lossRecord = made;
    }

    void start() {
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Never blocks, and throws only errors of the JVM: queues the record or drops it. It is built only if there
     * is room for its payload, and queued only if there is room for its headers, too.
     */
    void offer(IntSupplier payloadBytes, Supplier<ProducerRecord<byte[], byte[]>> built) {
        if (isClosed) {
            return; // a broker keeps calling a reporter that was taken out of metric.reporters
        }
        received.increment();
        long reserved = 0;
        boolean isQueued = false;
        try {
            long least = RECORD_OVERHEAD + payloadBytes.getAsInt();
            if (reserve(least)) {
                reserved = least;
                ProducerRecord<byte[], byte[]> data = built.get();
                long all = bytesOf(data);
                if (reserve(all - least)) {
                    reserved = all;
                    Entry entry = new Entry(data, all);
                    // Once closed, the thread may have emptied the queue before.
                    isQueued = queue.offer(entry) && !(isClosed && queue.remove(entry));
                }
            }
            if (!isQueued) {
                dropped.increment();
                lastError = "the queue is full";
            }
        } catch (VirtualMachineError error) {
            failed.increment();
            throw error;
        } catch (Exception | Error error) {
            settle(error);
        } finally {
            if (!isQueued) {
                queuedBytes.addAndGet(-reserved);
            }
        }
    }

    /** What a record takes of the heap: clients choose the length of their names, which are in headers. */
    private static long bytesOf(ProducerRecord<byte[], byte[]> data) {
        long bytes = RECORD_OVERHEAD + lengthOf(data.key()) + lengthOf(data.value());
        for (Header header : data.headers()) {
            bytes += HEADER_OVERHEAD + lengthOf(header.value());
        }
        return bytes;
    }

    private static int lengthOf(byte[] bytes) {
        return bytes == null ? 0 : bytes.length;
    }

    private boolean reserve(long bytes) {
        boolean fits = queuedBytes.addAndGet(bytes) <= maxBytes;
        if (!fits) {
            queuedBytes.addAndGet(-bytes);
        }
        return fits;
    }

    private void sendUntilClosed() {
        while (!isClosed) {
            try {
                sendNext();
                sayLosses();
            } catch (InterruptedException interrupt) {
                Thread.interrupted(); // by close, else by somebody who does not own this thread
            } catch (Throwable error) {
                // Even the count of a failure failed. Without this thread no record would ever be sent again.
            }
        }
        while (queue.poll() != null) {
            dropped.increment();
            lastError = "closing";
        }
        logLosses(dropped.sum() + failed.sum());
        if (producer != null) {
            Thread.interrupted(); // else the producer would not wait for what is on its way
            try {
                producer.close(CLOSE_TIMEOUT);
            } finally {
                logLosses(dropped.sum() + failed.sum()); // what was on its way may have failed
            }
        }
    }

    private void sendNext() throws InterruptedException {
        Entry entry = queue.poll();
        if (entry == null) {
            Thread.sleep(IDLE_MS);
            return;
        }
        queuedBytes.addAndGet(-entry.bytes());
        try {
            build();
            producer.send(entry.data(), (metadata, error) -> settle(error));
        } catch (VirtualMachineError error) {
            settle(error);
            Thread.sleep(PAUSE_MS);
        } catch (Exception | Error error) {
            settle(error);
            if (producer == null) {
                Thread.sleep(REBUILD_MS);
            }
        }
    }

    /** At the first record: by then this broker's own listeners are up. */
    private void build() {
        if (producer == null) {
            producer = newProducer.get();
        }
    }

    private void settle(Throwable error) {
        if (error == null) {
            sent.increment();
        } else {
            failed.increment();
            lastError = error.toString();
        }
    }

    /** To the broker's log and to the topic, every ten seconds at most. */
    private void sayLosses() {
        long losses = dropped.sum() + failed.sum();
        boolean isToLog = losses > loggedLosses;
        boolean isToRecord =
            lossRecord != null && producer != null && !isLossOnItsWay && losses > recordedLosses;
        if (isToLog || isToRecord) {
            long nowMs = System.nanoTime() / 1_000_000;
            if (isToLog && nowMs - nextLogMs >= 0) {
                nextLogMs = nowMs + SAY_EVERY_MS;
                logLosses(losses);
            }
            if (isToRecord && nowMs - nextRecordMs >= 0) {
                nextRecordMs = nowMs + SAY_EVERY_MS;
                sendLosses(losses);
            }
        }
    }

    private void logLosses(long losses) {
        if (losses > loggedLosses) {
            loggedLosses = losses;
            // Here, because an appender is made before there are loggers.
            LoggerFactory.getLogger(RecordSender.class).warn(
                "{}: {}; of {} records {} were dropped, {} failed", name, lastError, received, dropped, failed);
        }
    }

    /** What cannot be delivered now is in the next record. */
    private void sendLosses(long losses) {
        isLossOnItsWay = true;
        long before = recordedLosses;
        recordedLosses = losses;
        try {
            producer.send(lossRecord.apply(losses - before), (metadata, error) -> settleLosses(error, before));
        } catch (RuntimeException | Error error) {
            settleLosses(error, before);
        }
    }

    private void settleLosses(Throwable error, long before) {
        if (error != null) {
            recordedLosses = before;
        }
        isLossOnItsWay = false;
    }

    /** Bounded: what is queued is dropped, what is on its way gets a second. */
    void close() {
        isClosed = true;
        thread.interrupt();
        try {
            thread.join(2 * CLOSE_TIMEOUT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public long getReceived() {
        return received.sum();
    }

    @Override
    public long getSent() {
        return sent.sum();
    }

    @Override
    public long getDropped() {
        return dropped.sum();
    }

    @Override
    public long getFailed() {
        return failed.sum();
    }

    @Override
    public int getQueueSize() {
        return queue.size();
    }
}
