package quotaflow;

import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.helpers.LogLog;
import org.apache.log4j.spi.LoggingEvent;

/** The request log as an appender of reload4j (Kafka 3.8 and 3.9), with the properties config and broker. */
public final class Reload4jAppender extends AppenderSkeleton {
    private String config;
    private String broker;
    private volatile RequestLog log;

    /** The path of a properties file. */
    public void setConfig(String config) {
        this.config = config;
    }

    public String getConfig() {
        return config;
    }

    /** The node.id of this broker. */
    public void setBroker(String broker) {
        this.broker = broker;
    }

    public String getBroker() {
        return broker;
    }

    /** A file that cannot be right leaves the broker without a request log: its console names what is wrong. */
    @Override
    public void activateOptions() {
        try {
            log = RequestLog.start(config, broker);
        } catch (IllegalArgumentException error) {
            LogLog.error("quotaflow.Reload4jAppender ships no request log: " + error.getMessage());
        }
    }

    @Override
    protected void append(LoggingEvent event) {
        RequestLog current = log;
        if (current != null) {
            current.append(event.getLoggerName(), event.getTimeStamp(), event.getRenderedMessage());
        }
    }

    @Override
    public void close() {
        closed = true;
        RequestLog current = log;
        log = null;
        if (current != null) {
            current.close();
        }
    }

    @Override
    public boolean requiresLayout() {
        return false;
    }
}
