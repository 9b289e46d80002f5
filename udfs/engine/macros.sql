-- What every rule may use. Times are TIMESTAMP in UTC. Differences between DuckDB and what the
-- tables mean (null, casts, text to numbers) are settled here, and nowhere else.

-- x / y, rounded down: // alone rounds negative numbers up.
CREATE MACRO floor_div(x, y) AS (x - (x % y + y) % y) // y;

-- The start of the aligned period of `s` seconds that contains a time.
CREATE MACRO floored(t, s) AS
    make_timestamp(floor_div(epoch_us(t), s * 1_000_000::BIGINT) * (s * 1_000_000::BIGINT));

-- Seconds and milliseconds since 1970, rounded down.
CREATE MACRO epoch_seconds(t) AS floor_div(epoch_us(t), 1_000_000::BIGINT);
CREATE MACRO epoch_millis(t) AS floor_div(epoch_us(t), 1_000::BIGINT);
CREATE MACRO from_seconds(s) AS make_timestamp(s * 1_000_000::BIGINT);
CREATE MACRO from_millis(ms) AS make_timestamp(ms * 1_000::BIGINT);

-- How many requests a row of `requests` counts for: a whole number, so that sums are exact in any
-- order. CAST alone would round 2.6 to 3. Rows from before sampling have null.
CREATE MACRO weight_of(weight) AS CAST(trunc(coalesce(weight, 1)) AS BIGINT);

-- A whole number from text of digits alone. TRY_CAST alone also reads 1e3, 0x10, 1.5 and 1_000.
CREATE MACRO int_or_null(value) AS
    CASE WHEN regexp_full_match(value, '\s*[+-]?[0-9]+\s*') THEN TRY_CAST(value AS INT) END;
CREATE MACRO bigint_or_null(value) AS
    CASE WHEN regexp_full_match(value, '\s*[+-]?[0-9]+\s*') THEN TRY_CAST(value AS BIGINT) END;

-- An integer of JSON. from_json alone also makes integers of "4", 4.0, 4.7 and true.
CREATE MACRO json_int(j) AS
    CASE WHEN json_type(j) IN ('UBIGINT', 'BIGINT') THEN TRY_CAST(j AS INT) END;
CREATE MACRO json_bigint(j) AS
    CASE WHEN json_type(j) IN ('UBIGINT', 'BIGINT') THEN TRY_CAST(j AS BIGINT) END;

-- JSON text, or null where it is malformed: from_json fails on malformed text.
CREATE MACRO json_or_null(value) AS CASE WHEN json_valid(value) THEN value::JSON END;

-- A quotient, or null for a divisor of zero: DuckDB divides to infinity.
CREATE MACRO ratio(x, y) AS x / nullif(y, 0);

-- Each element once, in the order of the first ones: list_distinct has no order.
CREATE MACRO distinct_of(l) AS list_filter(l, lambda x, i: list_position(l, x) = i);

-- The time from which a row of a snapshot is valid: what the first snapshot of a cluster saw may be
-- older than it, so it is valid for all time before too.
CREATE MACRO since_of(t, first_snapshot) AS
    CASE WHEN t = first_snapshot THEN make_timestamp(0) ELSE t END;
