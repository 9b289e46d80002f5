-- Casts of JSON values that were read as text. Null where the text is no such value: never rounded.

-- DuckDB casts '1.9' to 2, so a cast counts only if it prints the same text. Else shippers may have
-- written an integer as 1.0, or with spaces.
CREATE OR REPLACE MACRO int64(value) AS CASE
    WHEN CAST(TRY_CAST(value AS BIGINT) AS VARCHAR) = value THEN TRY_CAST(value AS BIGINT)
    WHEN regexp_full_match(value, '\s*[+-]?[0-9]+(?:\.0+)?\s*')
        THEN TRY_CAST(regexp_extract(value, '[+-]?[0-9]+') AS BIGINT)
END;

CREATE OR REPLACE MACRO int32(value) AS CASE
    WHEN CAST(TRY_CAST(value AS INTEGER) AS VARCHAR) = value THEN TRY_CAST(value AS INTEGER)
    WHEN regexp_full_match(value, '\s*[+-]?[0-9]+(?:\.0+)?\s*')
        THEN TRY_CAST(regexp_extract(value, '[+-]?[0-9]+') AS INTEGER)
END;

-- Also nan and inf, which no request takes: the line's reason says so. DuckDB reads 1_000 as 1000.
CREATE OR REPLACE MACRO number(value) AS
    CASE WHEN NOT contains(value, '_') THEN TRY_CAST(value AS DOUBLE) END;

CREATE OR REPLACE MACRO flag(value) AS CASE value WHEN 'true' THEN true WHEN 'false' THEN false END;

-- The number at the end of a name such as kafka-0, or of the first part of a path or a domain: not
-- that of an address such as ip-10-0-0-1.
CREATE OR REPLACE MACRO name_number(value) AS int32(nullif(regexp_extract(
    value,
    '^(?:[A-Za-z0-9-]*-)?[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*-([0-9]{1,9})(?:\.[A-Za-z][A-Za-z0-9.-]*|[_/].*)?$',
    1), ''));

-- The broker of a field that names one: its id as it is, or the number of its name. Negative ids
-- are of no broker.
CREATE OR REPLACE MACRO stated_broker(value) AS CASE
    WHEN int32(value) IS NULL THEN name_number(value)
    WHEN int32(value) >= 0 THEN int32(value)
END;

-- Whether a name is that of a machine, on which any broker may run.
CREATE OR REPLACE MACRO is_machine(value) AS
    regexp_matches(regexp_extract(value, '^[^._/]*'),
        '(?i)(?:^|-)(?:worker|node|nodepool|agent|server|minion|master|plane|host|machine|instance|vm|ip|ec2)s?[0-9]*-')
    AND NOT regexp_matches(regexp_extract(value, '^[^._/]*'), '(?i)kafka|broker|controller');

-- The broker of a record key, a pod or a host: an id, or the number of a name if a snapshot has it.
CREATE OR REPLACE MACRO named_broker(value, brokers) AS CASE
    WHEN int32(value) IS NOT NULL THEN stated_broker(value)
    WHEN list_contains(brokers, name_number(value)) AND NOT is_machine(value)
        THEN name_number(value)
END;

-- Microseconds since 1970 of a number of seconds, ms, us or ns: since 2010 they differ in length.
CREATE OR REPLACE MACRO epoch_us_of(value) AS CASE
    WHEN abs(value) < 100_000_000_000 THEN value * 1_000_000
    WHEN abs(value) < 100_000_000_000_000 THEN value * 1_000
    WHEN abs(value) < 100_000_000_000_000_000 THEN value
    ELSE value // 1_000
END;

-- An instant from 2010 to 2100, else null.
CREATE OR REPLACE MACRO plausible_us(us) AS
    CASE WHEN us BETWEEN 1_262_304_000_000_000 AND 4_102_444_800_000_000 THEN us END;

-- A time with its zone as DuckDB takes it: Java prints 'Z[UTC]' and '+01:00[Europe/Berlin]'.
CREATE OR REPLACE MACRO zoned(value) AS regexp_replace(regexp_replace(regexp_replace(
    replace(value, ',', '.'), '\[[^\]]*\]\s*$', ''), '\s*(?i:Z|UTC|GMT)\s*$', 'Z'), '\s+([+-])', '\1');

-- Whether a text is a time that names its zone.
CREATE OR REPLACE MACRO is_zoned(value) AS regexp_full_match(value,
    '.*:[0-9]{2}(?:[.,][0-9]+)?\s*(?:(?i:Z|UTC|GMT)|[+-][0-9]{2}(?::?[0-9]{2})?)(?:\[[\w/+-]+\])?\s*');

-- Microseconds since 1970 of a time in any form that shippers write; null without a zone.
CREATE OR REPLACE MACRO instant_us(value) AS CASE
    WHEN int64(value) IS NOT NULL
        THEN plausible_us(CAST(epoch_us_of(CAST(int64(value) AS HUGEINT)) AS BIGINT))
    WHEN number(value) IS NOT NULL
        THEN plausible_us(TRY_CAST(epoch_us_of(number(value)) AS BIGINT))
    WHEN is_zoned(value) THEN plausible_us(epoch_us(TRY_CAST(zoned(value) AS TIMESTAMPTZ)))
END;

-- What a clock shows, of a time without a zone.
CREATE OR REPLACE MACRO local_time(value) AS
    CASE WHEN NOT is_zoned(value) THEN TRY_CAST(replace(value, ',', '.') AS TIMESTAMP) END;

-- The instants at which clocks of a zone show this time, in order: two where clocks go back, none
-- where they skip it. They have the offset of the day before or of the day after, because no zone
-- changes its offset twice in two days.
CREATE OR REPLACE MACRO instants_of(shown, zone) AS list_sort(list_distinct(list_filter([
    epoch_us(timezone(zone, shown - INTERVAL 1 DAY)) + 86_400_000_000,
    epoch_us(timezone(zone, shown + INTERVAL 1 DAY)) - 86_400_000_000
], lambda us: timezone(zone, make_timestamptz(us)) = shown AND plausible_us(us) IS NOT NULL)));

-- Whether a later time decides between two instants: it is so soon after the second that after the
-- first the line would have been late by as much as they are apart, and more.
CREATE OR REPLACE MACRO decides_between(instants, us) AS
    us - instants[2] <= instants[2] - instants[1];

-- The last time in a text that names its zone, else the last time: the text before a request has
-- those of the layout and of shippers.
CREATE OR REPLACE MACRO time_before(prefix) AS coalesce(
    regexp_extract_all(prefix, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:\s?(?:Z|[+-][0-9]{2}:?[0-9]{2})|[+-][0-9]{2})')[-1],
    regexp_extract_all(prefix, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?')[-1]
);

-- Whether a text is a time that does not name its zone.
CREATE OR REPLACE MACRO is_zoneless(value) AS regexp_full_match(value,
    '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?');

-- The host that syslog or Logstash's `plain` writes before a line.
CREATE OR REPLACE MACRO host_before(prefix) AS nullif(regexp_extract(prefix,
    '^(?:<[0-9]{1,3}>)?(?:[0-9] )?(?:[A-Z][a-z]{2} [ 0-9]?[0-9] [0-9:]{8}|[0-9]{4}-[^ ]+) (?:\{name=)?([^ {},]+)[ },]',
    1), '');
