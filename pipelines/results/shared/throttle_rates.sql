-- Rates of replication throttles that brokers had (KIP-73): one row per broker, side and period
-- with a rate, from `since` to `until` (null: still). broker_id null: brokers without rows of their
-- own.
WITH values_set AS (
    SELECT
        *, int_or_null(entity_name) AS broker_id, TRY_CAST(value AS DOUBLE) AS rate,
        -- Kafka's default, the greatest LONG, is no rate.
        coalesce(rate < 9223372036854775807, false) AS is_set
    FROM throttle_configs
    WHERE entity_type = 'broker'
    -- Of values at one time the last one counts.
    QUALIFY n = max(n) OVER (PARTITION BY cluster_id, side, entity_name, since)
),
own AS (FROM values_set WHERE broker_id IS NOT NULL),
defaults AS (FROM values_set WHERE entity_name = ''),
-- One row per time at which the rate of a broker may change.
changes AS (
    SELECT cluster_id, side, broker_id, since FROM own
    UNION
    SELECT cluster_id, side, own.broker_id, defaults.since
    FROM defaults JOIN own USING (cluster_id, side)
    UNION
    SELECT cluster_id, side, NULL, since FROM defaults
),
-- The value that decides from then on. A snapshot shows what each broker has, from any source: it
-- is valid until the default changes. A static rate is only reported: brokers ignore it.
decided AS (
    SELECT
        c.*,
        lead(c.since) OVER (PARTITION BY c.cluster_id, c.side, c.broker_id ORDER BY c.since)
            AS until,
        CASE
            WHEN o.is_set AND (o.source = 'dynamic_broker' OR coalesce(o.since >= d.since, true))
                THEN o
            WHEN d.is_set THEN d
            WHEN o.is_set AND o.source = 'static' THEN o
        END AS decisive
    FROM changes c
    ASOF LEFT JOIN own o ON o.cluster_id = c.cluster_id AND o.side = c.side
        AND o.broker_id = c.broker_id AND o.since <= c.since
    ASOF LEFT JOIN defaults d ON d.cluster_id = c.cluster_id AND d.side = c.side
        AND d.since <= c.since
)
SELECT
    cluster_id, side, broker_id, since, until,
    decisive.rate AS rate, decisive.source AS rate_source, decisive.set_at AS set_at,
    decisive.set_by AS set_by, decisive.set_by_client_id AS set_by_client_id
FROM decided
WHERE decisive IS NOT NULL
