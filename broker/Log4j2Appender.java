package quotaflow;

import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.Core;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.config.plugins.PluginAttribute;
import org.apache.logging.log4j.core.config.plugins.PluginElement;
import org.apache.logging.log4j.core.config.plugins.PluginFactory;

/** The request log as an appender of log4j2 (Kafka 4.0 and newer): the element `RequestLogTopic`. */
@Plugin(name = "RequestLogTopic", category = Core.CATEGORY_NAME, elementType = Appender.ELEMENT_TYPE)
public final class Log4j2Appender extends AbstractAppender {
    private final String config;
    private final String broker;
    private volatile RequestLog log;

    private Log4j2Appender(String name, Filter filter, String config, String broker) {
        super(name, filter, null, true, Property.EMPTY_ARRAY);
        this.config = config;
        this.broker = broker;
    }

    /** `config` is the path of a properties file, `broker` the node.id. */
    @PluginFactory
    public static Log4j2Appender create(
            @PluginAttribute("name") String name, @PluginAttribute("config") String config,
            @PluginAttribute("broker") String broker, @PluginElement("Filter") Filter filter) {
        return new Log4j2Appender(name, filter, config, broker);
    }

    /** A file that cannot be right leaves the broker without a request log: its console names what is wrong. */
    @Override
    public void start() {
        try {
            log = RequestLog.start(config, broker);
        } catch (IllegalArgumentException error) {
            LOGGER.error("quotaflow.Log4j2Appender ships no request log: {}", error.getMessage());
        }
        super.start();
    }

    @Override
    public void append(LogEvent event) {
        RequestLog current = log;
        if (current != null) {
            current.append(event.getLoggerName(), event.getTimeMillis(), event.getMessage().getFormattedMessage());
        }
    }

    @Override
    public boolean stop(long timeout, TimeUnit unit) {
        setStopping();
        boolean hasStopped = super.stop(timeout, unit, false);
        RequestLog current = log;
        if (current != null) {
            current.close();
        }
        setStopped();
        return hasStopped;
    }
}
