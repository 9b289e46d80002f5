-- kind: intermediate
-- grain: one row per topic of the last snapshot
-- area: cluster
-- level: admin_api
-- question: Retention. How long does each topic keep its records?
-- description: What is set on the topic, else what brokers have. Of brokers with different values the
--   greatest counts. Kafka deletes whole segments: a record goes no sooner than the newest one of its
--   segment.
-- columns:
--   from current_topics: cluster_id, topic
--   cleanup_policy: cleanup.policy, or log.cleanup.policy; null: not known
--   retention_ms: retention.ms, or log.retention.ms, .minutes or .hours; -1: no limit by time; null: not
--     known
--   retention_bytes: retention.bytes, or log.retention.bytes; -1: no limit; null: not known
--   local_retention_ms: local.retention.ms, or retention.ms where it is -2; -1: no limit;
--     null: not known
--   local_retention_bytes: local.retention.bytes, or retention.bytes where it is -2; -1: no limit;
--     null: not known
WITH of_topics AS (
    SELECT
        cluster_id,
        entity_name AS topic,
        max(CASE WHEN config_key = 'cleanup.policy' THEN config_value END) AS policy,
        max(CASE WHEN config_key = 'retention.ms' THEN config_value END) AS whole_ms,
        max(CASE WHEN config_key = 'retention.bytes' THEN config_value END) AS whole_bytes,
        max(CASE WHEN config_key = 'local.retention.ms' THEN config_value END) AS local_ms,
        max(CASE WHEN config_key = 'local.retention.bytes' THEN config_value END) AS local_bytes
    FROM current_configs
    WHERE entity_type = 'topic'
    GROUP BY cluster_id, entity_name
),
of_brokers AS (
    SELECT
        cluster_id,
        max(CASE WHEN config_key = 'log.cleanup.policy' THEN config_value END) AS policy,
        max(CASE WHEN config_key = 'log.retention.ms' THEN config_value END) AS whole_ms,
        max(CASE WHEN config_key = 'log.retention.minutes' THEN config_value END) AS whole_minutes,
        max(CASE WHEN config_key = 'log.retention.hours' THEN config_value END) AS whole_hours,
        max(CASE WHEN config_key = 'log.retention.bytes' THEN config_value END) AS whole_bytes,
        max(CASE WHEN config_key = 'log.local.retention.ms' THEN config_value END) AS local_ms,
        max(CASE WHEN config_key = 'log.local.retention.bytes' THEN config_value END) AS local_bytes
    FROM current_configs
    WHERE entity_type = 'broker'
    GROUP BY cluster_id
),
limits AS (
    SELECT
        topics.cluster_id,
        topics.topic,
        coalesce(of_topics.policy, of_brokers.policy) AS cleanup_policy,
        coalesce(
            TRY_CAST(coalesce(of_topics.whole_ms, of_brokers.whole_ms) AS BIGINT),
            TRY_CAST(of_brokers.whole_minutes AS BIGINT) * 60000,
            TRY_CAST(of_brokers.whole_hours AS BIGINT) * 3600000
        ) AS whole_ms,
        TRY_CAST(coalesce(of_topics.whole_bytes, of_brokers.whole_bytes) AS BIGINT) AS retention_bytes,
        TRY_CAST(coalesce(of_topics.local_ms, of_brokers.local_ms) AS BIGINT) AS local_ms,
        TRY_CAST(coalesce(of_topics.local_bytes, of_brokers.local_bytes) AS BIGINT) AS local_bytes
    FROM (SELECT DISTINCT cluster_id, topic FROM current_topics) AS topics
    LEFT JOIN of_topics ON topics.cluster_id = of_topics.cluster_id AND topics.topic = of_topics.topic
    LEFT JOIN of_brokers ON topics.cluster_id = of_brokers.cluster_id
),
signed AS (
    -- -1 hour is no limit too.
    SELECT *, CASE WHEN whole_ms < 0 THEN -1 ELSE whole_ms END AS retention_ms
    FROM limits
)

SELECT
    *,
    CASE WHEN local_ms = -2 THEN retention_ms ELSE local_ms END AS local_retention_ms,
    CASE WHEN local_bytes = -2 THEN retention_bytes ELSE local_bytes END AS local_retention_bytes
FROM signed
