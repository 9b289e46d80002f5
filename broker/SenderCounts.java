package quotaflow;

/** What JMX shows of a RecordSender: records since the broker started. */
public interface SenderCounts {
    /** Records that were to be sent. */
    long getReceived();

    /** Records the topic has. */
    long getSent();

    /** Records that found the queue full, or were left in it at close. */
    long getDropped();

    /** Records that could not be built, or that the producer could not deliver. */
    long getFailed();

    /** Records that wait for the producer. */
    int getQueueSize();
}
