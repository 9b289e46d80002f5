"""No line ends a batch, changes another line, or chooses to be left out."""

import json
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas import events
from quotaflow.udfs.request_log import reader, statements, wrappers
from quotaflow.udfs.request_log.columns import DOUBTFUL, LEFT_OUT, REASONS
from quotaflow.udfs.request_log.parser import LineParser

from ...examples import EXPENSIVE
from ...record_batches import parsed, record_batch

MS = 1_795_226_400_000
GOOD = {
    "isForwarded": False,
    "requestHeader": {
        "requestApiKey": 1,
        "requestApiVersion": 16,
        "correlationId": 7,
        "clientId": "app",
        "requestApiKeyName": "FETCH",
    },
    "request": {
        "maxBytes": 100,
        "topics": [{"topicId": "a", "partitions": [{"partition": 0, "fetchOffset": 5}]}],
        "forgottenTopicsData": [],
    },
    "response": {
        "errorCode": 0,
        "sessionId": 3,
        "responses": [
            {"topicId": "a", "partitions": [{"partitionIndex": 0, "recordsSizeInBytes": 9}]}
        ],
    },
    "connection": "10.0.0.1:9092-10.0.0.9:58132-1-2",
    "totalTimeMs": 1.5,
    "throttleTimeMs": 0,
    "securityProtocol": "SSL",
    "principal": "User:alice",
    "listener": "SSL",
    "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2"},
}
PARSER = LineParser(IngestSection().line_options)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["1", "1.0", " 2", "-0", "1e3", "9" * 30, "NaN", "true", "\ud800", "\0"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a line."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    below = [
        place
        for name, each in inner
        if isinstance(each, dict | list)
        for place in places(each, (*path, name))
    ]
    names = node if isinstance(node, dict) else range(len(node))
    return [*((*path, name) for name in names), *below]


def replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = replaced(node[path[0]], path[1:], value)
    return copy


def rows_of(values: list[bytes]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = PARSER.parse(record_batch(values)).lines.to_pylist()
    return rows


LINE = encoded({"ts": MS, "broker": 1, "r": GOOD})
ALONE = rows_of([LINE])[0]


def assert_is_alone(row: dict[str, Any], offset: int) -> None:
    assert row == ALONE | {"source_offset": offset}


def assert_others_are_read(odd: list[bytes]) -> None:
    """Good lines around each odd one are as they are alone."""
    rows = rows_of([LINE, *(line for each in odd for line in (each, LINE))])
    assert len(rows) == 2 * len(odd) + 1
    for offset in range(0, len(rows), 2):
        assert_is_alone(rows[offset], offset)


@EXPENSIVE
@given(st.lists(st.tuples(st.sampled_from(places(GOOD)), VALUES), min_size=30, max_size=60))
def test_any_value_in_any_place_costs_its_line_at_most(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    odd = [
        encoded({"ts": MS, "broker": 1, "r": replaced(GOOD, path, value)})
        for path, value in changes
    ]
    assert_others_are_read(odd)


@EXPENSIVE
@given(
    st.lists(
        st.tuples(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 400)),
        min_size=30,
        max_size=60,
    )
)
def test_any_bytes_in_a_line_cost_that_line_at_most(changes: list[tuple[bytes, int, int]]) -> None:
    assert_others_are_read(
        [LINE[:start] + junk + LINE[start + length :] for junk, start, length in changes]
    )


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"r":{"requestHeader":{"requestApiKeyName":' + b"[" * 100_000,
        b'{"ts":' + b"9" * 10_000 + b',"r":' + encoded(GOOD) + b"}",
        b'{"r":{"requestHeader":{"requestApiKey":' + b"1" * 5_000 + b"}}}",
        b'{"message":"Completed request:{' + b'\\"a\\":{' * 50_000 + b'"}',
        b'{"ts":1,"ts":2,"r":1,"r":' + encoded(GOOD) + b"}",
        b"\xef\xbb\xbf" * 1_000,
        b"\0" * 100_000,
        b"Completed request:" * 10_000,
        b"Completed request:{" * 10_000,
        b'"' * 100_001,
    ],
    ids=lambda text: f"{text[:24]!r}",
)
def test_extreme_lines_cost_themselves(text: bytes) -> None:
    assert_others_are_read([text])


# What a client decides: its id, software, and all of its request. The broker writes the rest.
BY_CLIENT = [
    path
    for path in places(GOOD)
    if path[0] in {"request", "clientInformation"} or path == ("requestHeader", "clientId")
]
NAMES = st.sampled_from(
    [
        *IngestSection().shippers,
        *IngestSection().shipper_principals,
        "CONTROLLER",
        events.RAFT_TOPIC_ID,
        *events.RAFT_APIS,
        "true",
        '","isForwarded":true,"a":"',
    ]
)


@EXPENSIVE
@given(
    st.lists(
        st.tuples(
            st.sampled_from(BY_CLIENT),
            NAMES | VALUES,
            st.sampled_from(["FETCH", "PRODUCE", *events.RAFT_APIS]),
            st.integers(-(2**31), 2**31 - 1),
        ),
        min_size=30,
        max_size=60,
    )
)
def test_nothing_that_a_client_writes_leaves_its_line_out(
    changes: list[tuple[tuple[Any, ...], Any, str, int]],
) -> None:
    ingest = IngestSection(sampling={"PRODUCE": 0.5})
    plain, written = [], []
    for number, (path, value, api, correlation_id) in enumerate(changes):
        header = GOOD["requestHeader"] | {"requestApiKeyName": api}
        request = GOOD | {"totalTimeMs": number}
        plain.append(encoded(request | {"requestHeader": header}))
        changed = request | {"requestHeader": header | {"correlationId": correlation_id}}
        written.append(encoded(replaced(changed, path, value)))
    for before, after in zip(parsed(plain, ingest), parsed(written, ingest), strict=True):
        # A line that names a producer or cannot be read is not sampled: that only keeps more.
        assert after["left_out"] in {None, before["left_out"]}
        assert before["left_out"] in {None, "sampled"}


def test_a_line_that_makes_the_reader_fail_is_named_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = reader.Reader.read

    def failing(self: reader.Reader, texts: pa.Table) -> tuple[pa.Table, pa.Table]:
        if any("poison" in text for text in texts["text"].to_pylist()):
            raise duckdb.InternalException("a defect of the reader")
        return read(self, texts)

    monkeypatch.setattr(reader.Reader, "read", failing)
    good = LINE
    bad = encoded({"ts": MS, "broker": 1, "r": GOOD | {"principal": "poison"}})
    rows = rows_of([good, good, bad, good, bad])
    assert [row["reason"] for row in rows] == [None, None, "reader_failed", None, "reader_failed"]
    assert rows[2]["detail"] == "InternalException"
    for offset in (0, 1, 3):
        assert_is_alone(rows[offset], offset)


READ_AS: list[tuple[Any, int | None, bool]] = [
    *((5, 5, False), ("5", 5, False), (" 5 ", 5, False), (5.0, 5, False), ("5.0", 5, False)),
    *((-1, -1, False), (5.5, None, True), ("5.5", None, True), (True, None, True)),
    *(("", None, True), ("five", None, True), ([5], None, True), (10**20, None, True)),
    (None, None, False),
]


def test_a_number_is_that_integer_or_null_and_counted() -> None:
    values = [encoded(replaced(GOOD, ("request", "maxBytes"), value)) for value, *_ in READ_AS]
    rows = parsed(values)
    names = ("max_bytes", "unreadable_numbers")
    read = [tuple(row[name] for name in names) for row in rows if row["reason"] is None]
    assert [(case[0], *each) for case, each in zip(READ_AS, read, strict=True)] == READ_AS


# What a line says in numbers, by its path; of the lists one element.
NUMBERS = {
    **{("requestHeader", n): n for n in ("requestApiVersion", "correlationId")},
    **{("request", n): n for n in ("maxWaitMs", "minBytes", "isolationLevel", "sessionId")},
    ("response", "errorCode"): "errorCode",
    **{(n,): n for n in ("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs")},
    **{(n,): n for n in ("throttleTimeMs", "responseQueueTimeMs", "sendTimeMs")},
    ("request", "topics", 0, "partitions", 0, "partition"): "partition",
    ("request", "topics", 0, "partitions", 0, "fetchOffset"): "fetchOffset",
    ("response", "responses", 0, "partitions", 0, "recordsSizeInBytes"): "recordsSizeInBytes",
}


def set_at(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """As `replaced`, also where nothing is yet."""
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    below = copy.get(path[0], {}) if isinstance(copy, dict) else copy[path[0]]
    copy[path[0]] = set_at(below, path[1:], value)
    return copy


def test_every_number_is_read_as_text_too() -> None:
    forms = ["{}", "{}.0", " {} ", "+{}"]
    plain, as_text = GOOD, [GOOD] * len(forms)
    for number, path in enumerate(NUMBERS, start=2):
        # Responses answer partitions that were requested.
        value = 0 if path[-1] == "partition" else number
        plain = set_at(plain, path, value)
        as_text = [
            set_at(line, path, form.format(value))
            for line, form in zip(as_text, forms, strict=True)
        ]
    expected, *rows = parsed(map(encoded, [plain, *as_text]))
    assert expected["unreadable_numbers"] is False
    assert rows == [expected | {"source_offset": n} for n, _ in enumerate(forms, start=1)]


NO_NUMBERS = ["0x10", "1_000", "1,5", "\uff11\uff12", "1e", "--1", "1 2", True, {}, [1]]


def test_what_is_no_number_is_null_and_counted() -> None:
    cases = [(path, value) for path in NUMBERS if 0 not in path for value in NO_NUMBERS]
    rows = parsed(encoded(set_at(GOOD, path, value)) for path, value in cases)
    outcomes = [(row["reason"], row["unreadable_numbers"]) for row in rows]
    wrong = [case for case, seen in zip(cases, outcomes, strict=True) if seen != (None, True)]
    assert not wrong


def test_of_a_repeated_key_the_first_counts_in_both_readers() -> None:
    twice = LINE.replace(
        b'"principal":"User:alice"', b'"principal":"User:bob","principal":"User:alice"'
    )
    # The second is read by Python, because of the key before the envelope's.
    rows = rows_of([twice, b'{"a":1,' + twice[1:]])
    assert [row["principal"] for row in rows] == ["User:bob"] * 2


def test_codes_of_the_text_are_those_that_the_columns_declare() -> None:
    sql = statements.text("lines")
    codes = {code for code in re.findall(r"THEN '(\w+)'", sql) if not code.isupper()}
    assert codes == {*LEFT_OUT, "not_a_request_line", "unexpected_shape", "no_time"}
    assert codes <= {*LEFT_OUT, *REASONS}
    assert set(DOUBTFUL) <= set(ALONE)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[2026-11-20 10:00:00,123] DEBUG ",
        "2026-11-20T10:00:00.134567890Z stdout F [2026-11-20 10:00:00,123] DEBUG ",
        "[2026-11-20T10:00:00,123+0100] DEBUG ",
        "[2026-11-20T10:00:00,123+01] DEBUG ",
        "[2026-11-20 10:00:00 -01:00] [2026-11-21T10:00:00Z] ",
        "2026-11-20 10:00 ",
    ],
)
def test_the_time_before_a_request_is_the_same_in_sql_and_in_python(prefix: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(statements.text("macros"))
        in_sql = connection.execute("SELECT time_before($1)", [prefix]).fetchall()
    assert in_sql == [(wrappers.time_before(prefix),)]
