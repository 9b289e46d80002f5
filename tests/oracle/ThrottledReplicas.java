package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import kafka.server.TopicConfigHandler;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.storage.internals.log.ThrottledReplicaListValidator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Whom a list of throttled replicas names, and what altering makes of it.
 *
 * <p>A line of JSON in: cases [{value, brokers [..]}] or [{value, operation, operand}]. A line out:
 * for each of the first whether the list is valid, and the partitions each broker takes from it, -1
 * all of them, null where it stumbles; for each of the second the value the controller stores.
 */
public final class ThrottledReplicas {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String KEY =
        QuotaConfig.LEADER_REPLICATION_THROTTLED_REPLICAS_CONFIG;
    private static final ConfigResource TOPIC =
        new ConfigResource(ConfigResource.Type.TOPIC, "t");

    public static void main(String[] arguments) throws Exception {
        var cases = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            ArrayNode answers = JSON.createArrayNode();
            for (JsonNode request : JSON.readTree(line)) {
                answers.add(request.has("operation") ? altered(request) : named(request));
            }
            System.out.println(answers);
            System.out.flush();
        }
    }

    private static ObjectNode named(JsonNode request) {
        String value = request.get("value").textValue();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("is_valid", isValid(value));
        ArrayNode partitions = answer.putArray("partitions");
        for (JsonNode broker : request.get("brokers")) {
            partitions.add(partitions(value, broker.intValue()));
        }
        return answer;
    }

    private static boolean isValid(String value) {
        try {
            ThrottledReplicaListValidator.ensureValidString(KEY, value);
            return true;
        } catch (ConfigException e) {
            return false;
        }
    }

    private static JsonNode partitions(String value, int brokerId) {
        var handler = new TopicConfigHandler(null, null, null);
        var properties = new Properties();
        properties.put(KEY, value);
        try {
            ArrayNode found = JSON.createArrayNode();
            for (Object partition : CollectionConverters.asJava(
                    handler.parseThrottledPartitions(properties, brokerId, KEY))) {
                found.add((Integer) partition);
            }
            return found;
        } catch (ConfigException | IndexOutOfBoundsException | NumberFormatException e) {
            return JSON.nullNode();
        }
    }

    private static ObjectNode altered(JsonNode request) {
        ConfigDef topics = new ConfigDef().define(
            KEY, ConfigDef.Type.LIST, "", ConfigDef.Importance.MEDIUM, "as LogConfig has it");
        var schema = new KafkaConfigSchema(
            Map.of(ConfigResource.Type.TOPIC, topics), Map.of());
        var manager = new ConfigurationControlManager.Builder()
            .setFeatureControl(new FeatureControlManager.Builder().build())
            .setKafkaConfigSchema(schema)
            .build();
        if (request.get("value").isTextual()) {
            manager.replay(record(request.get("value").textValue()));
        }
        OpType operation = OpType.valueOf(request.get("operation").textValue());
        String operand = request.get("operand").textValue();
        var change = Map.of(KEY, Map.entry(operation, operand));
        var result = manager.incrementalAlterConfig(TOPIC, change, true, false);
        result.records().forEach(r -> manager.replay((ConfigRecord) r.message()));
        ObjectNode answer = JSON.createObjectNode();
        answer.put("error", result.response().error().code());
        answer.put("value", manager.getConfigs(TOPIC).get(KEY));
        return answer;
    }

    private static ConfigRecord record(String value) {
        return new ConfigRecord()
            .setResourceType(TOPIC.type().id()).setResourceName(TOPIC.name())
            .setName(KEY).setValue(value);
    }
}
