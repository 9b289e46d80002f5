package quotaflow;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * What the properties file of the request log says. The producer's properties are checked by the producer.
 *
 * <p>No class used here makes a logger: an appender is made while there are none.
 */
final class RequestLogSettings {
    /** The client id of all that ships lines, which quotaflow's ingest.shippers names. */
    static final String CLIENT_ID = "quotaflow-shipper";
    /** Of other APIs results need each line. */
    static final Set<ApiKeys> SAMPLED =
        Set.of(ApiKeys.PRODUCE, ApiKeys.HEARTBEAT, ApiKeys.OFFSET_FETCH, ApiKeys.FIND_COORDINATOR);
    private static final int MOST_ONE_OF = 1_000;
    private static final String SAMPLING = "sampling.";
    private static final String PRODUCER = "producer.";
    private static final String PROVIDERS = "config.providers";
    private static final Set<String> KEYS = new TreeSet<>(List.of(
        "bootstrap.servers", "topic", "own.principal", "apis.include", "apis.exclude", "principals.include",
        "principals.exclude", "queue.max.records", "queue.max.bytes"));

    final String topic;
    final String ownPrincipal;
    /** Ids of APIs; null for all. */
    final Set<Integer> includedApis;
    final Set<Integer> excludedApis;
    /** Null for all. */
    final Set<String> includedPrincipals;
    final Set<String> excludedPrincipals;
    /** Id of an API -> n, where one line of n is sent. */
    final Map<Integer, Integer> oneOf = new HashMap<>();
    final int maxRecords;
    final long maxBytes;
    /** The properties of the producer, secrets by reference as they are written. */
    final Map<String, Object> producer = producerDefaults();
    private final Map<String, String> given = new HashMap<>();

    /** Throws IllegalArgumentException with the key of what cannot be right. */
    RequestLogSettings(Map<String, String> properties) {
        properties.forEach(this::sort);
        topic = text("topic", "broker_request_logs");
        ownPrincipal = text("own.principal", "");
        if (ownPrincipal.isEmpty() || text("bootstrap.servers", "").isEmpty()) {
            throw new IllegalArgumentException(
                "own.principal, such as User:shipper, and bootstrap.servers are required");
        }
        includedApis = given.containsKey("apis.include") ? apis("apis.include") : null;
        excludedApis = apis("apis.exclude");
        includedPrincipals = given.containsKey("principals.include") ? principals("principals.include") : null;
        excludedPrincipals = principals("principals.exclude");
        maxRecords = (int) number("queue.max.records", 10_000, Integer.MAX_VALUE);
        maxBytes = number("queue.max.bytes", 16L << 20, Long.MAX_VALUE);
        producer.put("bootstrap.servers", text("bootstrap.servers", ""));
    }

    /** Throws IllegalArgumentException with the file's name. */
    static RequestLogSettings of(String file) {
        if (file == null || file.isBlank()) {
            throw new IllegalArgumentException("config, the path of a properties file, is required");
        }
        Properties read = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
            read.load(reader);
        } catch (IOException | RuntimeException error) {
            throw new IllegalArgumentException("cannot read " + file + ": " + error, error);
        }
        Map<String, String> properties = new HashMap<>();
        read.stringPropertyNames().forEach(key -> properties.put(key, read.getProperty(key).trim()));
        try {
            return new RequestLogSettings(properties);
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException(file + ": " + error.getMessage(), error);
        }
    }

    private static Map<String, Object> producerDefaults() {
        return new HashMap<>(Map.ofEntries(
            Map.entry("enable.metrics.push", "false"),
            Map.entry("metric.reporters", ""),
            // A line that is sent twice counts twice. This takes one producer id per start of a broker.
            Map.entry("enable.idempotence", "true"),
            Map.entry("acks", "all"),
            Map.entry("compression.type", "zstd"),
            Map.entry("linger.ms", "100"),
            Map.entry("batch.size", String.valueOf(256 << 10)),
            // As long as a broker starts that is its own cluster: meanwhile lines wait in the queue.
            Map.entry("max.block.ms", "30000"),
            Map.entry("delivery.timeout.ms", "120000"),
            Map.entry("buffer.memory", String.valueOf(16 << 20)),
            Map.entry("max.request.size", String.valueOf(8 << 20)),
            Map.entry("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer"),
            Map.entry("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer")));
    }

    private void sort(String key, String value) {
        if (key.equals(PRODUCER + "client.id")) {
            throw new IllegalArgumentException(key + " is " + CLIENT_ID + ": by it, lines about lines are left out");
        } else if (key.startsWith(PRODUCER)) {
            producer.put(key.substring(PRODUCER.length()), value);
        } else if (key.equals(PROVIDERS) || key.startsWith(PROVIDERS + ".")) {
            producer.put(key, value);
        } else if (key.startsWith(SAMPLING)) {
            sample(api(key, key.substring(SAMPLING.length())), key, value);
        } else if (KEYS.contains(key)) {
            given.put(key, value);
        } else {
            throw new IllegalArgumentException("unknown " + key + ", known are " + KEYS + ", "
                + SAMPLING + "API, " + PRODUCER + "* and " + PROVIDERS + "*");
        }
        producer.put("client.id", CLIENT_ID);
    }

    private void sample(ApiKeys api, String key, String value) {
        if (!SAMPLED.contains(api)) {
            throw new IllegalArgumentException(key + ": no API that may be sampled, those that may: "
                + new TreeSet<>(SAMPLED));
        }
        double share = Double.NaN;
        try {
            share = Double.parseDouble(value);
        } catch (NumberFormatException error) {
            // NaN is refused below.
        }
        long whole = Math.round(1 / share);
        if (!(Math.abs(share * whole - 1) < 1e-9) || whole < 1 || whole > MOST_ONE_OF) {
            throw new IllegalArgumentException(
                key + ": " + value + " must be 1, 1/2, 1/3 ... 1/" + MOST_ONE_OF + ": write 0.5, 0.25, 0.1, 0.01");
        }
        oneOf.put((int) api.id, (int) whole);
    }

    private Set<Integer> apis(String key) {
        Set<Integer> ids = new HashSet<>();
        for (String name : parts(key, ",")) {
            ids.add((int) api(key, name).id);
        }
        return ids;
    }

    private static ApiKeys api(String key, String name) {
        try {
            return ApiKeys.valueOf(name);
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException(key + ": there is no API " + name, error);
        }
    }

    /** Separated by ';', as in super.users: a distinguished name has commas. */
    private Set<String> principals(String key) {
        return new HashSet<>(parts(key, ";"));
    }

    private List<String> parts(String key, String separator) {
        return List.of(text(key, "").split(separator)).stream().map(String::trim).filter(each -> !each.isEmpty())
            .toList();
    }

    private String text(String key, String otherwise) {
        return given.getOrDefault(key, otherwise);
    }

    private long number(String key, long otherwise, long most) {
        String text = text(key, String.valueOf(otherwise));
        try {
            long number = Long.parseLong(text);
            if (number >= 1 && number <= most) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Refused below, as a number out of bounds is.
        }
        throw new IllegalArgumentException(key + ": " + text + " must be a number from 1 to " + most);
    }
}
