-- Every text as our envelope, where its form is one that brokers write: our envelope, a bare line,
-- or Kafka's own layout `[date] LEVEL Completed request:{...} (kafka.request.logger)`.
-- Of other forms the text is null: then `wrappers.py` finds the request.
SELECT * REPLACE (CASE form
    WHEN 'bare' THEN '{"r":' || text || '}'
    WHEN 'stock layout' THEN
        '{"ts":' || coalesce(to_json(time_before(
            substr(text, 1, strpos(text, 'Completed request:{') - 1))), 'null')
        || ',"r":' || regexp_extract(text, '(?s)Completed request:(\{.*\})', 1) || '}'
    WHEN 'envelope' THEN text
    WHEN 'wrapped' THEN text
END AS text)
FROM (
    SELECT * REPLACE (CASE
        WHEN form IS NOT NULL THEN form
        WHEN regexp_matches(text, '^\s*\{\s*"(?:ts|broker|r)"\s*:') THEN 'envelope'
        WHEN regexp_matches(text, '^\s*\{\s*"(?:isForwarded|requestHeader)"\s*:') THEN 'bare'
        WHEN contains(text, 'Completed request:{') AND NOT regexp_matches(text, '^\s*\{')
            THEN 'stock layout'
    END AS form)
    FROM texts
)
