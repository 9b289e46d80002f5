"""How far a quota is raised: a replay of the client's requests says what a step leaves."""

import re
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.byte_quota_replay import replayed
from quotaflow.pipelines.areas.replayed_quota import PRODUCER, ReplayedQuota
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...rows import Row, quota, request
from .test_verdict import OF_QUOTA, verdict_of

RATE = PRODUCER


def requests(size: int, throttle_ms: int, count: int = 60) -> list[Row]:
    """A request a second at one broker; of every fifth the answer says to wait."""
    sent = {"principal": "User:bad", "client_id": "bad", "connection_id": "c"}
    return [
        request(
            60 * 25 + n,
            "PRODUCE",
            partitions=[{"topic": "orders", "partition": 0, "bytes": size}],
            **sent,
        )
        | {"throttle_time_ms": throttle_ms if n % 5 == 4 else 0}
        for n in range(count)
    ]


def step_of(folder: Path, sent: list[Row]) -> str:
    content = OF_QUOTA | {"requests": sent, "client_quotas": [quota(0, RATE, 1_000.0, user="bad")]}
    return verdict_of(folder, content).causes[0].step or ""


@cases(
    ("size", "left"),
    ("a step is enough", 1_200, "not have waited"),
    ("it sends ten times its quota", 10_000, r"still have waited \S+ (s|min) of 9.6 s"),
)
def test_a_step_says_what_a_replay_leaves(size: int, left: str, tmp_path: Path) -> None:
    step = step_of(tmp_path, requests(size, 800))
    assert re.search(
        rf"raise the quota; by a replay, the last 60 requests would {left}: kafka-", step
    )
    proposed = float(step.rpartition("=")[2])
    conf = config.Conf(warehouse=Warehouse(config.WarehouseSection(path=str(tmp_path))).conf)
    what_if = replayed(conf, ReplayedQuota(RATE, proposed, "bad"), None)
    assert (what_if.after_ms < 100) is (left == "not have waited")


@pytest.mark.parametrize("sent", [[], requests(1_200, 0)], ids=["no log", "no throttle in it"])
def test_without_throttled_requests_nothing_is_said_of_a_replay(
    sent: list[Row], tmp_path: Path
) -> None:
    step = step_of(tmp_path, sent)
    assert "replay" not in step
    assert step.startswith(
        "spread the client's requests over time, or raise the quota: kafka-configs.sh"
    )
