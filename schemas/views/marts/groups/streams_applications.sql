-- kind: mart
-- grain: one row per application of Kafka Streams
-- area: groups
-- level: sampled_log
-- question: Kafka Streams. How is each Kafka Streams application doing?
-- description: Applications of Kafka Streams as one object, over the last day. Its id is that of its
--   group. In classic groups its members show by the assignor or by their client ids, which clients
--   choose. Telemetry adds what the application reports of itself (KIP-1076, KIP-1091).
-- empty: while no Kafka Streams application works
-- columns:
--   from group_membership: cluster_id
--   application_id: application.id, which is the id of the group: untrusted text
--   group_type: streams (KIP-1071) or classic
--   processes: processes with members that neither left nor were removed
--   threads: members that neither left nor were removed; each is a stream thread
--   active_tasks: active tasks that they have; null: classic, whose answers do not name tasks
--   standby_tasks: standby tasks that they have; null: classic
--   assigned_partitions: partitions that they have; null: streams, whose answers name tasks
--   subscribed_topics: source topics, each once, sorted; null: no request of the day names them
--   principals: principals of its members, sorted
--   client_addresses: addresses of its members, sorted
--   client_software_versions: versions of its library, sorted
--   commits: commits in the day
--   errors: requests that failed in the day
--   rebalances: rebalances of the last two days
--   last_rebalance: when the last of them started; null: none
--   instances: client instances that report metrics of Streams, from an hour before last_seen on;
--     null: none does
--   instances_running: of these, the ones that report RUNNING; null: none reports its state
--   alive_threads: stream threads that they report alive; null: none reports it
--   last_seen: when a broker completed the last request of a member
WITH members AS (
    SELECT
        *,
        CASE WHEN state IN ('active', 'silent') THEN 1 ELSE 0 END AS is_in
    FROM group_membership
    WHERE member_id IS NOT NULL
        AND (group_type = 'streams' OR group_type = 'classic' AND process_id IS NOT NULL)
),
applications AS (
    SELECT
        cluster_id, group_id, max(group_type) AS group_type,
        count(DISTINCT CASE WHEN is_in = 1 THEN process_id END) AS processes,
        sum(is_in) AS threads,
        sum(CASE WHEN is_in = 1 THEN cardinality(active_tasks) END) AS active_tasks,
        sum(CASE WHEN is_in = 1 THEN cardinality(standby_tasks) END) AS standby_tasks,
        sum(CASE WHEN is_in = 1 THEN cardinality(assigned_partitions) END) AS assigned_partitions,
        sort_array(collect_set(principal)) AS principals,
        sort_array(collect_set(client_address)) AS client_addresses,
        sort_array(collect_set(client_software_version)) AS client_software_versions,
        sum(commits) AS commits, sum(errors) AS errors, max(last_seen) AS last_seen
    FROM members
    GROUP BY cluster_id, group_id
),
named_topics AS (
    SELECT cluster_id, group_id, sort_array(collect_set(topic)) AS subscribed_topics
    FROM (
        SELECT cluster_id, group_id, explode(subscribed_topics) AS topic
        FROM members
    ) AS each_topic
    GROUP BY cluster_id, group_id
),
rebalanced AS (
    SELECT
        cluster_id, group_id, count(*) AS rebalances, max(started_at) AS last_rebalance
    FROM rebalances
    GROUP BY cluster_id, group_id
),
-- Only the state names the application, so an instance is known by it.
named AS (
    SELECT cluster_id, client_instance_id, max(application_id) AS application_id
    FROM client_metrics
    WHERE application_id IS NOT NULL
    GROUP BY cluster_id, client_instance_id
),
reported AS (
    SELECT
        m.cluster_id, n.application_id, m.client_instance_id, m.metric,
        coalesce(m.value, m.value_int) AS value,
        row_number() OVER (
            PARTITION BY m.cluster_id, n.application_id, m.client_instance_id, m.metric
            ORDER BY m.event_time DESC, m.series_id
        ) AS nth
    FROM client_metrics AS m
    INNER JOIN named AS n USING (cluster_id, client_instance_id)
    INNER JOIN applications AS a
        ON a.cluster_id = n.cluster_id AND a.group_id = n.application_id
    WHERE m.metric IN (
        'org.apache.kafka.stream.client.state', 'org.apache.kafka.stream.alive.stream.threads'
    )
        AND unix_millis(m.event_time) > unix_millis(a.last_seen) - 3600000
),
instances AS (
    SELECT
        cluster_id, application_id, count(DISTINCT client_instance_id) AS instances,
        sum(
            CASE
                WHEN metric = 'org.apache.kafka.stream.client.state'
                    THEN CASE WHEN value = 2 THEN 1 ELSE 0 END
            END
        ) AS instances_running,
        sum(
            CASE WHEN metric = 'org.apache.kafka.stream.alive.stream.threads' THEN value END
        ) AS alive_threads
    FROM reported
    WHERE nth = 1
    GROUP BY cluster_id, application_id
)
SELECT
    a.cluster_id, a.group_id AS application_id, a.group_type, a.processes, a.threads,
    a.active_tasks, a.standby_tasks, a.assigned_partitions, t.subscribed_topics, a.principals,
    a.client_addresses, a.client_software_versions, a.commits, a.errors,
    coalesce(r.rebalances, 0) AS rebalances, r.last_rebalance, i.instances, i.instances_running,
    i.alive_threads, a.last_seen
FROM applications AS a
LEFT JOIN named_topics AS t USING (cluster_id, group_id)
LEFT JOIN rebalanced AS r USING (cluster_id, group_id)
LEFT JOIN instances AS i ON i.cluster_id = a.cluster_id AND i.application_id = a.group_id
