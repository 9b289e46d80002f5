package quotaflow;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A queue bounded in records and bytes, and the one thread that drains it into a producer. */
final class TelemetrySender implements TelemetryReceiver.Counts {
    private static final Logger LOG = LoggerFactory.getLogger(TelemetrySender.class);
    private static final long LOG_EVERY_MS = 10_000;
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(1);

    private final LongAdder received = new LongAdder();
    private final LongAdder sent = new LongAdder();
    private final LongAdder dropped = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final AtomicLong queuedBytes = new AtomicLong();
    private final AtomicLong lastLogMs = new AtomicLong();
    private final Thread thread = new Thread(this::sendUntilClosed, "quotaflow-telemetry-sender");
    private final BlockingQueue<ProducerRecord<byte[], byte[]>> queue;
    private final long maxBytes;
    private final Map<String, Object> producerConfig;
    private volatile boolean isClosed;

    TelemetrySender(int maxRecords, long maxBytes, Map<String, Object> producerConfig) {
        this.queue = new LinkedBlockingQueue<>(maxRecords);
        this.maxBytes = maxBytes;
        this.producerConfig = producerConfig;
    }

    void start() {
        thread.setDaemon(true);
        thread.start();
    }

    /** Never blocks: queues the record, built only if there is room for its bytes, or drops it. */
    void offer(int bytes, Supplier<ProducerRecord<byte[], byte[]>> push) {
        if (isClosed) {
            return; // a broker keeps calling a reporter that was taken out of metric.reporters
        }
        received.increment();
        if (!reserve(bytes)) {
            drop();
        } else if (!queue.offer(push.get())) {
            queuedBytes.addAndGet(-bytes);
            drop();
        }
    }

    private boolean reserve(int bytes) {
        boolean fits = queuedBytes.addAndGet(bytes) <= maxBytes;
        if (!fits) {
            queuedBytes.addAndGet(-bytes);
        }
        return fits;
    }

    private void sendUntilClosed() {
        Producer<byte[], byte[]> producer = null;
        try {
            while (!isClosed) {
                ProducerRecord<byte[], byte[]> push = queue.take();
                queuedBytes.addAndGet(-push.value().length);
                producer = send(producer, push);
            }
        } catch (InterruptedException closing) {
            LOG.debug("closing");
        }
        for (int left = queue.size(); left > 0; left--) {
            drop();
        }
        if (producer != null) {
            Thread.interrupted(); // else the producer would not wait for what is on its way
            producer.close(CLOSE_TIMEOUT);
        }
    }

    /** The producer is built at the first push: by then this broker's own listeners are up. */
    private Producer<byte[], byte[]> send(Producer<byte[], byte[]> existing, ProducerRecord<byte[], byte[]> push) {
        Producer<byte[], byte[]> producer = existing;
        try {
            if (producer == null) {
                producer = new KafkaProducer<>(producerConfig);
            }
            producer.send(push, (metadata, error) -> settle(error));
        } catch (KafkaException error) {
            settle(error);
        }
        return producer;
    }

    private void settle(Exception error) {
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
