import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import kafka.cluster.Partition;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.replica.RackAwareReplicaSelector;
import org.apache.kafka.common.replica.ReplicaSelector;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.replica.ReplicaState;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the broker's ReplicaManager.findPreferredReadReplica answers with Kafka's own selector.
 *
 * <p>A line of JSON in: partitions [{client_rack, fetch_offset, replicas [{broker_id, rack,
 * log_start_offset, log_end_offset, caught_up_ms_ago, is_in_sync, is_online}]}], the first replica
 * leads. A line out: for each the broker named, null where the consumer is to stay with the leader.
 *
 * <p>A whole ReplicaManager is a whole broker: this one is made without its constructor and given
 * what the method reads, and so are the partition and its log.
 */
public final class ReplicaChoice {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final long NOW_MS = 1_000_000_000_000L;
    private static final int CONSUMER = -1;

    public static void main(String[] arguments) throws Exception {
        var cases = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            ArrayNode answers = JSON.createArrayNode();
            for (JsonNode partition : JSON.readTree(line)) {
                answers.add(answer(partition));
            }
            System.out.println(answers);
            System.out.flush();
        }
    }

    private static Integer answer(JsonNode request) throws Exception {
        var client = new ClientMetadata.DefaultClientMetadata(
            request.get("client_rack").textValue(), "", InetAddress.getLoopbackAddress(),
            KafkaPrincipal.ANONYMOUS, "CLIENT");
        JsonNode replicas = request.get("replicas");
        Option<Object> named = manager(replicas).findPreferredReadReplica(
            Led.by(replicas), client, CONSUMER, request.get("fetch_offset").longValue(), NOW_MS);
        return named.isEmpty() ? null : (Integer) named.get();
    }

    private static ReplicaManager manager(JsonNode replicas) throws Exception {
        Map<Integer, Node> online = new HashMap<>();
        for (JsonNode replica : replicas) {
            if (replica.get("is_online").booleanValue()) {
                int id = replica.get("broker_id").intValue();
                online.put(id, new Node(id, "h", 9092, replica.get("rack").textValue()));
            }
        }
        Object cache = Proxy.newProxyInstance(
            MetadataCache.class.getClassLoader(), new Class<?>[] {MetadataCache.class},
            (proxy, method, passed) -> {
                if (method.getName().equals("getPartitionReplicaEndpoints")) {
                    return online;
                }
                throw new UnsupportedOperationException(method.getName());
            });
        ReplicaSelector selector = new RackAwareReplicaSelector();
        var plugin = Plugin.wrapInstance(selector, (Metrics) null, "replica.selector.class");
        ReplicaManager manager = unbuilt(ReplicaManager.class);
        set(manager, "metadataCache", cache);
        set(manager, "replicaSelectorPlugin", Option.apply(plugin));
        return manager;
    }

    private static void set(ReplicaManager manager, String name, Object value) throws Exception {
        Field field = ReplicaManager.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(manager, value);
    }

    /** An object whose class's constructor did not run, as serialization makes them. */
    private static <T> T unbuilt(Class<T> type) throws Exception {
        Class<?> factory = Class.forName("sun.reflect.ReflectionFactory");
        var make = factory.getMethod(
            "newConstructorForSerialization", Class.class, Constructor.class);
        Object constructor = make.invoke(
            factory.getMethod("getReflectionFactory").invoke(null),
            type,
            Object.class.getDeclaredConstructor());
        return type.cast(((Constructor<?>) constructor).newInstance());
    }

    private static final class Led extends Partition {
        private int leaderId;
        private Log log;
        private Set<Object> inSync;
        private List<Replica> followers;

        private Led() {
            super(PARTITION, 0, 0, null, null, null, null, null, null, null, null);
        }

        static Led by(JsonNode replicas) throws Exception {
            Led partition = unbuilt(Led.class);
            partition.inSync = new HashSet<>();
            partition.followers = new ArrayList<>();
            for (JsonNode replica : replicas) {
                if (replica.get("is_in_sync").booleanValue()) {
                    partition.inSync.add(replica.get("broker_id").intValue());
                }
                partition.followers.add(new Follower(replica));
            }
            Follower leader = (Follower) partition.followers.remove(0);
            partition.leaderId = leader.brokerId();
            partition.log = unbuilt(Log.class);
            partition.log.endOffset = leader.stateSnapshot().logEndOffset();
            return partition;
        }

        @Override
        public TopicPartition topicPartition() {
            return PARTITION;
        }

        @Override
        public Option<Object> leaderIdIfLocal() {
            return Option.apply(leaderId);
        }

        @Override
        public scala.collection.immutable.Set<Object> inSyncReplicaIds() {
            return CollectionConverters.asScala(inSync).toSet();
        }

        @Override
        public scala.collection.Iterable<Replica> remoteReplicas() {
            return CollectionConverters.asScala(followers);
        }

        @Override
        public UnifiedLog localLogOrException() {
            return log;
        }
    }

    private static final class Log extends UnifiedLog {
        private long endOffset;

        private Log() throws IOException {
            super(0, null, null, 0, null, null, null, false, null);
        }

        @Override
        public long logEndOffset() {
            return endOffset;
        }
    }

    private static final class Follower extends Replica {
        private final ReplicaState state;

        private Follower(JsonNode replica) {
            super(replica.get("broker_id").intValue(), PARTITION, null);
            state = new ReplicaState(
                replica.get("log_start_offset").longValue(),
                new LogOffsetMetadata(replica.get("log_end_offset").longValue()),
                0, 0, NOW_MS - replica.get("caught_up_ms_ago").longValue(), Optional.empty());
        }

        @Override
        public ReplicaState stateSnapshot() {
            return state;
        }
    }
}
