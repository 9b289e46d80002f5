WITH named AS (
  SELECT
    traffic.cluster_id,
    DATE_TRUNC('HOUR', traffic.event_time) AS hour,
    traffic.principal,
    traffic.client_id,
    traffic.topic,
    CASE WHEN traffic.topic IS NULL THEN traffic.topic_id END AS unnamed_topic_id,
    traffic.direction,
    traffic.bytes,
    COALESCE(traffic.cross_rack_bytes, 0) AS cross_rack_bytes,
    CASE WHEN traffic.cross_rack_bytes IS NULL THEN traffic.bytes ELSE 0 END AS unknown_rack_bytes
  FROM traffic
), hours AS (
  SELECT
    cluster_id,
    hour,
    principal,
    client_id,
    topic,
    unnamed_topic_id,
    direction,
    SUM(bytes) AS bytes,
    SUM(cross_rack_bytes) AS cross_rack_bytes,
    SUM(unknown_rack_bytes) AS unknown_rack_bytes
  FROM named
  GROUP BY
    cluster_id,
    hour,
    principal,
    client_id,
    topic,
    unnamed_topic_id,
    direction
), priced AS (
  SELECT
    hours.*,
    hours.bytes * CASE
      WHEN hours.direction = 'produced'
      THEN prices.produced_per_gib
      ELSE prices.consumed_per_gib
    END AS own_cost,
    hours.cross_rack_bytes * prices.cross_rack_per_gib AS rack_cost,
    prices.currency
  FROM hours
  LEFT JOIN current_prices AS prices
    ON hours.cluster_id = prices.cluster_id
)
SELECT
  cluster_id,
  hour,
  principal,
  client_id,
  topic,
  unnamed_topic_id,
  direction,
  bytes,
  cross_rack_bytes,
  unknown_rack_bytes,
  TRY_CAST(cross_rack_bytes AS DOUBLE) / NULLIF(NULLIF(bytes - unknown_rack_bytes, 0), 0) AS cross_rack_share,
  CASE
    WHEN NOT own_cost IS NULL OR NOT rack_cost IS NULL
    THEN (
      COALESCE(own_cost, 0e0) + COALESCE(rack_cost, 0e0)
    ) / NULLIF(1073741824.0, 0)
  END AS cost,
  currency
FROM priced