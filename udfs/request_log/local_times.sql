-- The instant of each time. One without a zone is in conf's, where an hour may come twice: then it
-- is the instant nearest before the record's time. If the record has none or came too late to
-- decide, its shipper's time chooses. `ambiguous_time`: neither decides.
WITH shown AS (
    SELECT *, CASE WHEN instant IS NULL THEN local_time(ts) END AS clock_time FROM stated
), possible AS (
    SELECT *,
        -- A time that no zone can have between 2010 and 2100 may be past what DuckDB can add to.
        CASE WHEN clock_time BETWEEN TIMESTAMP '2009-12-30' AND TIMESTAMP '2100-01-03'
            THEN instants_of(clock_time, $time_zone) END AS instants
    FROM shown
), wrapped AS (
    SELECT *, CASE WHEN len(instants) = 2 THEN instant_us(wrapper_time) END AS wrapper_us
    FROM possible
), decided AS (
    SELECT *,
        CASE WHEN decides_between(instants, record_us) THEN record_us
            WHEN decides_between(instants, wrapper_us) THEN wrapper_us END AS deciding_us
    FROM wrapped
), chosen AS (
    SELECT *,
        coalesce(instants[2] <= coalesce(deciding_us, record_us) + $max_clock_skew_us, false)
            AS is_second,
        coalesce(len(instants) = 2 AND deciding_us IS NULL, false) AS ambiguous_time
    FROM decided
)
SELECT *,
    coalesce(instant, instants[CASE WHEN is_second THEN 2 ELSE 1 END]) AS ts_us,
    instants[CASE WHEN is_second THEN 1 ELSE 2 END] AS other_us
FROM chosen
