package quotaflow;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * Lets clients push telemetry (KIP-714) to brokers 3.7 to 4.1, where TelemetryReceiver cannot load.
 *
 * <p>A broker offers the two APIs once a reporter takes telemetry. This one drops each payload: the
 * request log has it.
 */
public final class TelemetryGate implements MetricsReporter, ClientTelemetry {
    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> { };
    }

    @Override
    public void configure(Map<String, ?> configs) { }

    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }

    @Override
    public void close() { }
}
