"""Requests and quotas as tables hold them, by hand and made up."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.udfs.rules.quota import DEFAULT, LEVELS, NAMED

from ....rows import Row, row

RATE_PERIOD_S = 11
START = datetime.fromtimestamp(1_795_262_403, UTC)  # a multiple of 11 s since the epoch
KINDS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage"]
APIS = {"PRODUCE": "producer_byte_rate", "FETCH": "consumer_byte_rate"}
Context = dict[str, list[Row]]


def at(second: float) -> datetime:
    """A time that many seconds after the start of a window."""
    return START + timedelta(seconds=second)


def request(second: float, api: str, **others: Any) -> Row:
    """A request of alice that broker 1 completed."""
    times = {"local_time_ms": 0.0, "throttle_time_ms": 0.0, "cluster_id": "c"}
    return row("requests", at(second), times | others, api=api)


def of_bytes(*sizes: int) -> Row:
    """Partitions of these sizes."""
    return {"partitions": [{"topic": "t", "partition": n, "bytes": s} for n, s in enumerate(sizes)]}


def quota(second: float, key: str, value: float | None, **entity: Any) -> Row:
    """A row of client_quotas; no value: removed."""
    nobody = {f"is_default_{part}": False for part in ("user", "client_id", "ip")}
    given = {"cluster_id": "c", "is_removed": value is None} | nobody | entity
    return row("client_quotas", at(second), given, config_key=key, quota=value)


def seen(table: str, second: float, **given: Any) -> Row:
    """What a snapshot saw."""
    return row(table, at(second), given, cluster_id="c")


# Clusters, and how many of the most specific levels have no quota.
CLUSTERS = {"all": 0, "some": 3, "few": 6}


def made_up_quotas(dice: random.Random) -> list[Row]:
    """Quotas of every level, set, changed and removed before, in and after windows."""
    rows, identities = [], set[tuple[Any, ...]]()
    for _ in range(200):
        cluster_id, first = dice.choice(list(CLUSTERS.items()))
        of_user, of_client_id = dice.choice(LEVELS[first:])
        user = dice.choice(["alice", "bob", "CN=x:y,O=ü"]) if of_user == NAMED else None
        client_id = dice.choice(["orders", "clicks"]) if of_client_id == NAMED else None
        entity: Row = {
            "user": user,
            "is_default_user": of_user == DEFAULT,
            "client_id": client_id,
            "is_default_client_id": of_client_id == DEFAULT,
        }
        key = dice.choice(KINDS)
        second = dice.choice([-100, 0, 3, 11, 14, 22, 25, 40, 44, 50, 99])
        if (identity := (cluster_id, *entity.values(), key, second)) in identities:
            continue
        identities.add(identity)
        value = dice.choice([None, 0.5, 100.0, 1e4, 1e9])
        set_at = dice.choice([None, at(second - 0.25)])
        entity |= {"cluster_id": cluster_id, "set_at": set_at}
        rows.append(quota(second, key, value, **entity))
    return rows


def made_up_requests(dice: random.Random, count: int = 3_000) -> list[Row]:
    """Requests of some clients over six windows."""
    return [
        request(
            dice.randrange(66_000) / 1_000,
            dice.choice(["PRODUCE", "FETCH", "METADATA"]),
            cluster_id=dice.choice(list(CLUSTERS)),
            broker_id=dice.choice([1, 2]),
            principal=f"User:{dice.choice(['alice', 'bob', 'CN=x:y,O=ü'])}",
            client_id=dice.choice(["orders", "clicks", "other", "", None]),
            local_time_ms=dice.choice([None, 0.001, 12.345, 800.0]),
            throttle_time_ms=dice.choice([None, 0.0, 0.0, 1.5, 900.0]),
            **of_bytes(*(dice.randrange(3_000) for _ in range(dice.randrange(4)))),
        )
        for _ in range(count)
    ]
