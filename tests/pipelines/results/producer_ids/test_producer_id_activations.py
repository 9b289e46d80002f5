"""The first snapshot that has a producer id, by leader and principal."""

from typing import Any

import pytest

from quotaflow.pipelines.config import Conf, ProducerIdsSection
from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.catalog import TABLES

from .... import rows
from ....cases import cases
from ....rows import Row, active, at
from ....rule_rows import Rows, compute

CONF = ProducerIdsSection(default_quota_per_s=1.0, quotas={"alice": 0.02})


def use(
    producer_id: int | None, principal: str | None, allocations: int, second: float, **others: Any
) -> Row:
    given = {"principal": principal, "allocations": allocations} | others
    return rows.use(second, producer_id, **given)


def activations(snapshots: Rows, owners: Rows) -> Rows:
    return compute(
        result_of("producer_id_activations", Conf(producer_ids=CONF)),
        active_producers=snapshots,
        producer_id_uses=owners,
    )


def test_an_activation_is_the_first_snapshot_that_has_an_id() -> None:
    snapshots = [
        active(0.5, 1),
        active(100, 1, partition=1),
        *(active(100, n) for n in (2, 3, 4, 99)),
        active(100, 2, broker_id=2),
        active(200, 2, is_removed=True),
        active(200, 5),
        active(300, 2),
    ]
    owners = [*(use(n, "User:alice", 1, n) for n in range(1, 6)), use(3, "User:liar", 0, 3)]
    names = ("event_time", "broker_id", "principal", "new_ids", "is_violating", "rate_per_s")
    got = [tuple(row[name] for name in names) for row in activations(snapshots, owners)]
    assert sorted(got, key=str) == [
        (at(0), 1, "User:alice", 1, False, None),
        (at(100), 1, "User:alice", 3, True, pytest.approx(3 / 99.5)),
        (at(100), 1, None, 1, False, pytest.approx(1 / 99.5)),
        (at(100), 2, "User:alice", 1, False, pytest.approx(1 / 99.5)),
        (at(200), 1, "User:alice", 1, False, pytest.approx(0.01)),
    ]


def test_columns_of_an_activation() -> None:
    seen = [active(0.5, 1), active(100, 2), active(100, 3)]
    activated = activations(seen, [use(2, "User:bob", 1, 0)])
    assert list(activated[0]) == TABLES["producer_id_rates"].column_names
    (of_bob,) = (row for row in activated if row["principal"] == "User:bob")
    assert of_bob == {
        "cluster_id": "c1",
        "event_date": at(0).date(),
        "event_time": at(100),
        "broker_id": 1,
        "principal": "User:bob",
        "kind": "activation",
        "sightings": 1,
        "new_ids": 1,
        "new_ids_exact": 1,
        "rate_per_s": pytest.approx(1 / 99.5),
        "tokens": None,
        "quota_per_s": 1.0,
        "throttle_time_ms": None,
        "throttle_time_avg_ms": None,
        "is_violating": False,
    }


@cases(
    ("owners", "principal"),
    ("nobody", [], None),
    ("the one that used it", [use(1, "User:a", 0, 1)], "User:a"),
    ("that used it last", [use(1, "User:a", 0, 1), use(1, "User:b", 0, 2)], "User:b"),
    ("that was given it", [use(1, "User:a", 1, 1), use(1, "User:b", 0, 2)], "User:a"),
    ("that was given it last", [use(1, "User:a", 2, 1), use(1, "User:b", 1, 2)], "User:b"),
    ("a tie: the first name", [use(1, "User:b", 1, 1), use(1, "User:a", 1, 1)], "User:a"),
    ("no principal", [use(1, None, 1, 1)], None),
    ("no id", [use(None, "User:a", 1, 1)], None),
    ("another cluster's", [use(1, "User:a", 1, 1, cluster_id="d")], None),
)
def test_the_owner_of_an_id(owners: Rows, principal: str | None) -> None:
    (row,) = activations([active(0, 1)], owners)
    assert row["principal"] == principal


def test_without_a_quota_of_conf_no_activation_violates_one() -> None:
    result = result_of("producer_id_activations")
    seen = [active(0.5, 1), *(active(1.5, n) for n in range(2, 90))]
    activated = compute(result, active_producers=seen)
    assert max(row["rate_per_s"] or 0 for row in activated) > 80
    assert {(row["quota_per_s"], row["is_violating"]) for row in activated} == {(None, False)}
