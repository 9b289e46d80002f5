-- kind: mart
-- grain: one row per client quota that is set
-- area: quotas
-- level: admin_api
-- question: Unused quotas. Which quotas does nobody use, and which are so high that nobody comes near?
-- description: When something was last charged to each client quota, and how near to it its users
--   came, over all that quota_usage and connection_rates have. A request is charged to the most
--   specific quota of its kind alone: another one of the user may be unused.
-- history: quota_usage
-- columns:
--   from current_client_quotas: cluster_id, user, is_default_user, client_id, is_default_client_id,
--     ip, is_default_ip, config_key, quota, valid_from
--   state: unused (nothing was charged to it), throttled (it likely throttled requests, and was
--     not raised since), over (peak_share is above 1), near (peak_share is 0.8 or more), free, or
--     unknown: there is no request log, or it has no bytes of SHARE_FETCH
--   last_used: start of the last window with requests that were charged to it, or of the minute in
--     which an address last opened a connection; null: none was
--   peak_usage: greatest usage in a window at one broker, in the unit of quota; at least the quota if it
--     throttled requests; null: none
--   peak_share: peak_usage / quota; null: none
--   known_since: first window of the cluster in quota_usage; null: there is no request log
WITH throttles AS (
    -- A quota of request time may throttle requests that count under their bytes.
    SELECT DISTINCT
        cluster_id, broker_id, event_time, principal, client_id, throttled_by AS quota_type,
        TRUE AS is_throttled
    FROM quota_usage
    WHERE
        throttled_requests > 0
        AND NOT coalesce(is_quota_changed, FALSE)
        AND enforcement IS DISTINCT FROM 'callback'
),
charged AS (
    SELECT
        cluster_id,
        quota_type,
        quota_level,
        CASE WHEN quota_level <= 3 THEN quota_bucket_user END AS user,
        CASE WHEN quota_level IN (1, 4, 7) THEN quota_bucket_client_id END AS client_id,
        max(event_time) AS last_used,
        max(CASE WHEN throttles.is_throttled THEN quota END) AS throttled_quota,
        -- Brokers measure 11 s that end at any time, so no window need have what throttled.
        greatest(
            max(quota_bucket_usage), max(CASE WHEN throttles.is_throttled THEN quota END)
        ) AS peak_usage,
        max(is_lower_bound) AS is_lower_bound
    FROM quota_usage
    LEFT JOIN throttles
        USING (cluster_id, broker_id, event_time, principal, client_id, quota_type)
    WHERE quota_level IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
),
connected AS (
    SELECT
        rates.cluster_id,
        limited.ip,
        max(rates.minute) AS last_used,
        max(rates.peak_per_s) AS peak_usage
    FROM connection_rates AS rates
    LEFT JOIN current_client_quotas AS limited
        ON rates.cluster_id = limited.cluster_id AND rates.client_address = limited.ip
    GROUP BY rates.cluster_id, limited.ip
),
leveled AS (
    SELECT
        *,
        CASE
            WHEN user IS NOT NULL THEN 1
            WHEN is_default_user THEN 4
            WHEN client_id IS NOT NULL THEN 7
            WHEN is_default_client_id THEN 8
        END + CASE
            WHEN user IS NULL AND NOT is_default_user OR client_id IS NOT NULL THEN 0
            WHEN is_default_client_id THEN 1
            ELSE 2
        END AS quota_level
    FROM current_client_quotas
),
known AS (
    SELECT cluster_id, min(event_time) AS known_since
    FROM quota_usage
    GROUP BY cluster_id
),
used AS (
    SELECT
        quotas.*,
        known.known_since,
        coalesce(charged.last_used, connected.last_used) AS last_used,
        coalesce(charged.peak_usage, connected.peak_usage) AS peak_usage,
        coalesce(charged.peak_usage, connected.peak_usage) / nullif(quotas.quota, 0) AS peak_share,
        charged.throttled_quota,
        coalesce(charged.is_lower_bound, false) AS is_lower_bound
    FROM leveled AS quotas
    LEFT JOIN known USING (cluster_id)
    LEFT JOIN charged
        ON quotas.cluster_id = charged.cluster_id
            AND quotas.config_key = charged.quota_type
            AND quotas.quota_level = charged.quota_level
            AND quotas.user IS NOT DISTINCT FROM charged.user
            AND quotas.client_id IS NOT DISTINCT FROM charged.client_id
    LEFT JOIN connected
        ON quotas.cluster_id = connected.cluster_id
            AND quotas.config_key = 'connection_creation_rate'
            AND quotas.ip IS NOT DISTINCT FROM connected.ip
)

SELECT
    *,
    CASE
        WHEN known_since IS NULL THEN 'unknown'
        WHEN last_used IS NULL THEN 'unused'
        WHEN throttled_quota >= quota THEN 'throttled'
        WHEN peak_share > 1 THEN 'over'
        WHEN peak_share >= 8e-1 THEN 'near'
        WHEN is_lower_bound THEN 'unknown'
        ELSE 'free'
    END AS state
FROM used
