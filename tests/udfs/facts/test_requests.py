"""One pass over records of the request log: rows of every table, and a count of every record."""

from typing import Any

from quotaflow.pipelines import config
from quotaflow.udfs.facts.facts import Facts, Outcome
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp.codecs import Limits

from ...pushes import encoded
from ...record_batches import RECORD_TIME, record_batch

FILLED = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")


def read(values: list[bytes], *overrides: str) -> Facts:
    ingest = config.load(overrides=list(overrides)).ingest
    log = RequestLog("cluster", ingest.line_options, Limits(), None)
    return log.open().read(record_batch(values), RECORD_TIME)


def of_api(line: dict[str, Any], api: str, total_ms: int = 1) -> bytes:
    header = line["requestHeader"] | {"requestApiKeyName": api}
    return encoded(line | {"requestHeader": header, "totalTimeMs": total_ms})


def test_bad_lines_of_a_batch_without_a_push_are_in_quarantine(
    push_lines: list[dict[str, Any]],
) -> None:
    facts = read([of_api(push_lines[0], "METADATA"), b"x"])
    assert [facts.tables[name].num_rows for name in FILLED] == [1, 0, 0, 1]


def test_what_is_sampled_is_counted(push_lines: list[dict[str, Any]]) -> None:
    lines = [of_api(push_lines[0], "HEARTBEAT", number) for number in range(20)]
    facts = read(lines, "ingest.sampling={HEARTBEAT: 0.25}")
    kept = facts.tables["requests"].num_rows
    assert 0 < kept < 20
    assert facts.counts[Outcome("left_out", None, "sampled")] == 20 - kept
    assert facts.counts[Outcome("out", "requests")] == kept


def test_a_line_without_a_number_is_kept_and_counted(push_lines: list[dict[str, Any]]) -> None:
    line = push_lines[0] | {"throttleTimeMs": "soon"}
    facts = read([of_api(line, "METADATA")])
    assert facts.tables["requests"]["throttle_time_ms"].to_pylist() == [None]
    assert facts.counts[Outcome("doubtful", "requests", "unreadable_numbers")] == 1


def test_a_record_with_several_lines_fills_every_table(push_lines: list[dict[str, Any]]) -> None:
    push = encoded(push_lines[0])
    lines = [of_api(push_lines[0], "METADATA", 2), push, b"Completed request:{torn", push]
    bodies = [{"body": {"stringValue": line.decode()}} for line in lines]
    batch = encoded({"resourceLogs": [{"scopeLogs": [{"logRecords": bodies}]}]})
    facts = read([push, batch, b"x"])
    places = {
        name: [(row["source_offset"], row["source_line"]) for row in facts.tables[name].to_pylist()]
        for name in FILLED
    }
    assert places == {
        "requests": [(0, None), (1, 0), (1, 1), (1, 3)],
        "telemetry_pushes": [(0, None), (1, 1), (1, 3)],
        "telemetry_subscriptions": [],
        "quarantine": [(1, 2), (2, None)],
    }
    assert set(facts.tables["telemetry_pushes"]["payload_sha256"].to_pylist()) == set(
        facts.tables["telemetry_pushes"]["payload_sha256"][:1].to_pylist()
    )
    # The head of such a record has other lines, too.
    assert facts.tables["quarantine"]["head"].to_pylist() == [None, None]
    assert facts.counts[Outcome("in")] == 6
