"""A broker whose clock is a day ahead: the rest of the brokers' pushes do not become late by it."""

import json
from collections import Counter
from datetime import timedelta

import pytest

from ...live.tables_read import query
from . import recorded
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

JOBS_IN_TURN = ("ingest_request_log", "client_metrics")


def pushes() -> list[dict[str, object]]:
    """Every push whose payload was accepted, each line once."""
    text = (recorded.LINES / "push_telemetry.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in dict.fromkeys(text)]
    return [line for line in lines if line["response"]["errorCode"] == 0]


def enveloped(line: dict[str, object], broker_id: int, ahead: timedelta) -> bytes:
    ts = int((recorded.SHIPPED + ahead).timestamp() * 1_000)
    return json.dumps({"ts": ts, "broker": broker_id, "r": line}).encode()


@pytest.mark.timeout(600)
def test_one_clock_ahead_makes_nobody_late(made: Made, topic: Topic) -> None:
    told = pushes()
    half = len(told) // 2
    ahead = [enveloped(line, 1, timedelta(days=1)) for line in told[:half]]
    right = [enveloped(line, 2, timedelta(0)) for line in told[half:]]
    topic([list(enumerate(ahead)), list(enumerate(right, start=half))])
    setting = made("clocks", *JOBS_IN_TURN)
    for job in JOBS_IN_TURN:
        recorded.run(setting, job)
    folder = setting.warehouse.conf.folder
    points = query(folder, "SELECT DISTINCT broker_id, payload_sha256 FROM client_metrics")
    sent = query(
        folder,
        "SELECT DISTINCT broker_id, payload_sha256 FROM telemetry_pushes WHERE point_count > 0",
    )
    assert {tuple(row.values()) for row in points} == {tuple(row.values()) for row in sent}
    assert Counter(row["broker_id"] for row in points).keys() == {1, 2}
    newest = query(folder, "SELECT max(event_time) AS newest FROM telemetry_pushes")[0]["newest"]
    assert newest <= recorded.SHIPPED + timedelta(seconds=60)
