-- Every text as our envelope, where its form is one that brokers write: our envelope, a bare line,
-- or Kafka's own layout `[date] LEVEL Completed request:{...} (kafka.request.logger)`.
-- Of other forms `form` is null: then `wrappers.py` finds the request.
SELECT * REPLACE (CASE form
    WHEN 'bare' THEN '{"r":' || text || '}'
    WHEN 'stock layout' THEN
        '{"ts":' || coalesce(to_json(time_before(
            substr(text, 1, strpos(text, 'Completed request:{') - 1))), 'null')
        || ',"r":' || regexp_extract(text, '(?s)Completed request:(\{.*\})', 1) || '}'
    ELSE text
END AS text,
CASE WHEN form = 'stock layout' AND NOT starts_with(text, '[')
    THEN [host_before(substr(text, 1, 200))] ELSE names END AS names)
FROM (
    SELECT * REPLACE (CASE
        WHEN form IS NOT NULL THEN form
        WHEN regexp_matches(text, '^\s*\{\s*"(?:ts|broker|r)"\s*:') THEN 'envelope'
        WHEN regexp_matches(text, '^\s*\{\s*"(?:isForwarded|requestHeader)"\s*:') THEN CASE
            WHEN ends_with(text, '}}') THEN 'bare'
            WHEN regexp_matches(right(text, 120),
                '(?:\}|"(?:temporaryMemoryBytes|messageConversionsTime)":[0-9.]+)\s*\}\s*$') THEN 'bare'
            -- Else a shipper may have added a time, which `wrappers.py` reads.
        END
        WHEN contains(text, 'Completed request:{') AND NOT regexp_matches(text, '^\s*\{')
            THEN 'stock layout'
    END AS form)
    FROM texts
)
WHERE form IS NOT NULL
