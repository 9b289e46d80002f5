package quotaflow;

import java.lang.management.ManagementFactory;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.slf4j.LoggerFactory;

/** Shows counts as quotaflow:type=TYPE; of two that have one type, the one that came last. */
final class JmxBean {
    private static final ConcurrentMap<String, Object> SHOWN = new ConcurrentHashMap<>();

    private JmxBean() { }

    static <T> void show(String type, Class<T> kind, T counts) {
        SHOWN.put(type, counts);
        register(type, new StandardMBean(counts, kind, false));
    }

    /** Does nothing if another one is shown by now. */
    static void hide(String type, Object counts) {
        if (SHOWN.remove(type, counts)) {
            register(type, null);
        }
    }

    private static void register(String type, StandardMBean bean) {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        try {
            ObjectName name = new ObjectName("quotaflow:type=" + type);
            if (server.isRegistered(name)) {
                server.unregisterMBean(name);
            }
            if (bean != null) {
                server.registerMBean(bean, name);
            }
        } catch (JMException e) {
            LoggerFactory.getLogger(JmxBean.class).warn("JMX does not show {}", type, e);
        }
    }
}
