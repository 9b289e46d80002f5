package quotaflow;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A queue bounded in records and in bytes of heap, and the one thread that drains it into a producer.
 *
 * <p>No exception of a push or of the producer ends that thread or keeps bytes reserved: it counts as failed.
 */
final class TelemetrySender implements TelemetryReceiver.Counts {
    private static final Logger LOG = LoggerFactory.getLogger(TelemetrySender.class);
    private static final long LOG_EVERY_MS = 10_000;
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(1);
    /** Objects and array headers beside the bytes: of a record with its place in the queue, of a header. */
    private static final int RECORD_OVERHEAD = 256;
    private static final int HEADER_OVERHEAD = 64;
    /** After an error of the JVM itself, such as a full heap, the next record waits. */
    private static final long PAUSE_MS = 1_000;

    private final LongAdder received = new LongAdder();
    private final LongAdder sent = new LongAdder();
    private final LongAdder dropped = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final AtomicLong queuedBytes = new AtomicLong();
    private final AtomicLong lastLogMs = new AtomicLong();
    private final Thread thread = new Thread(this::sendUntilClosed, "quotaflow-telemetry-sender");
    private final BlockingQueue<Push> queue;
    private final long maxBytes;
    private final Supplier<Producer<byte[], byte[]>> newProducer;
    private Producer<byte[], byte[]> producer;
    private volatile boolean isClosed;

    /** A record in the queue, and the bytes that are reserved for it. */
    private record Push(ProducerRecord<byte[], byte[]> data, long bytes) { }

    TelemetrySender(int maxRecords, long maxBytes, Supplier<Producer<byte[], byte[]>> newProducer) {
        this.queue = new LinkedBlockingQueue<>(maxRecords);
        this.maxBytes = maxBytes;
        this.newProducer = newProducer;
    }

    void start() {
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Never blocks, and throws only errors of the JVM: queues the record or drops it. It is built only if there
     * is room for its payload, and queued only if there is room for its headers, too.
     */
    void offer(IntSupplier payloadBytes, Supplier<ProducerRecord<byte[], byte[]>> push) {
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
                ProducerRecord<byte[], byte[]> data = push.get();
                long all = bytesOf(data);
                if (reserve(all - least)) {
                    reserved = all;
                    isQueued = queue.offer(new Push(data, all));
                }
            }
            if (!isQueued) {
                drop();
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
    private static long bytesOf(ProducerRecord<byte[], byte[]> push) {
        long bytes = RECORD_OVERHEAD + lengthOf(push.key()) + lengthOf(push.value());
        for (Header header : push.headers()) {
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
            } catch (InterruptedException interrupt) {
                LOG.debug("closing: {}", isClosed); // else somebody else interrupted this thread
            } catch (Throwable error) {
                // Even the count of a failure failed. Without this thread no push would ever be sent again.
            }
        }
        for (int left = queue.size(); left > 0; left--) {
            drop();
        }
        if (producer != null) {
            Thread.interrupted(); // else the producer would not wait for what is on its way
            producer.close(CLOSE_TIMEOUT);
        }
    }

    private void sendNext() throws InterruptedException {
        Push push = queue.take();
        queuedBytes.addAndGet(-push.bytes());
        try {
            // Built at the first push: by then this broker's own listeners are up.
            if (producer == null) {
                producer = newProducer.get();
            }
            producer.send(push.data(), (metadata, error) -> settle(error));
        } catch (VirtualMachineError error) {
            settle(error);
            Thread.sleep(PAUSE_MS);
        } catch (Exception | Error error) {
            settle(error);
        }
    }

    private void settle(Throwable error) {
        if (error == null) {
            sent.increment();
        } else {
            failed.increment();
            complain(error.toString());
        }
    }

    private void drop() {
        dropped.increment();
        complain(isClosed ? "closing" : "the queue is full");
    }

    private void complain(String why) {
        long nowMs = System.currentTimeMillis();
        long lastMs = lastLogMs.get();
        if (nowMs - lastMs >= LOG_EVERY_MS && lastLogMs.compareAndSet(lastMs, nowMs)) {
            LOG.warn("Client telemetry: {}; of {} pushes {} were dropped, {} failed", why, received, dropped, failed);
        }
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
