import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * What the broker's ClientQuotaManager says of clients under sets of quotas.
 *
 * <p>A line of JSON in: quotas [{user, is_default_user, client_id, is_default_client_id, quota}, a
 * null quota removes] and clients [{user, client_id}]. A line out: for each client its limit, and
 * the user and the client id that its bucket is tagged with.
 */
public final class ClientQuotas {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        // Kafka's names are UTF-8, whatever this machine's locale is.
        var cases = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            System.out.writeBytes((answer(JSON.readTree(line)) + "\n").getBytes("UTF-8"));
            System.out.flush();
        }
    }

    private static ArrayNode answer(JsonNode request) throws IOException {
        try (Metrics metrics = new Metrics()) {
            var manager = new ClientQuotaManager(
                new ClientQuotaManagerConfig(), metrics, QuotaType.PRODUCE, Time.SYSTEM, "oracle");
            try {
                for (JsonNode quota : request.get("quotas")) {
                    update(manager, quota);
                }
                ArrayNode answers = JSON.createArrayNode();
                for (JsonNode client : request.get("clients")) {
                    String user = client.get("user").textValue();
                    String clientId = client.get("client_id").textValue();
                    var principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
                    var session = new Session(principal, InetAddress.getLoopbackAddress());
                    Map<String, String> tags =
                        manager.getOrCreateQuotaSensors(session, clientId).metricTags();
                    answers.addArray()
                        .add(manager.quota(principal, clientId).bound())
                        .add(Sanitizer.desanitize(tags.get(ClientQuotaManager.USER_TAG)))
                        .add(tags.get(ClientQuotaManager.CLIENT_ID_TAG));
                }
                return answers;
            } finally {
                manager.shutdown();
            }
        }
    }

    private static void update(ClientQuotaManager manager, JsonNode quota) {
        Optional<ConfigEntity> user = part(quota, "user")
            .map(name -> new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name)));
        Optional<ConfigEntity> clientId =
            part(quota, "client_id").map(ClientQuotaManager.ClientIdEntity::new);
        if (quota.get("is_default_user").booleanValue()) {
            user = Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
        }
        if (quota.get("is_default_client_id").booleanValue()) {
            clientId = Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        Optional<Quota> bound = Optional.of(quota.get("quota"))
            .filter(JsonNode::isNumber).map(value -> Quota.upperBound(value.doubleValue()));
        manager.updateQuota(user, clientId, bound);
    }

    private static Optional<String> part(JsonNode quota, String name) {
        return Optional.ofNullable(quota.get(name).textValue());
    }
}
