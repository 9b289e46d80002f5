"""The preferred replica against the reference rule: random partitions, a cluster each."""

import random
from collections import Counter
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of
from quotaflow.udfs.rules import client_rack

from ....oracle.rules import replica
from ....oracle.rules.replica import RACK_AWARE, Preferred, Replica, preferred
from ....rule_rows import Rows, compute
from .replica_rows import BEFORE, answered, broker, fetch, seen, selector
from .replica_rows import replica as replica_row

RACKS = ["az-a", "az-b", "Zürich 2", None]
SELECTORS = [RACK_AWARE, RACK_AWARE, RACK_AWARE, None, "", "com.example.Nearest"]
NETWORKS = {"0.0.0.0/1": "az-a", "10.0.0.0/8": "az-b", "::/0": "az-c", "2001:db8::/32": "az-a"}
UNKNOWN = Preferred(None, "")
CASES = 5_000


def made_up(dice: random.Random) -> dict[str, Any]:
    ids = dice.sample([0, 1, 2, 9, 10, 1_000], dice.randint(1, 6))
    leader = dice.choice([*ids, *ids, None])
    replicas = [
        {"broker_id": id_, "rack": dice.choice(RACKS), "is_rack_known": dice.random() < 0.98}
        | {"is_leader": id_ == leader, "is_in_sync": dice.random() < 0.7}
        | {"is_offline": dice.random() < 0.1}
        for id_ in ids
    ]
    declared = dice.choice([*RACKS, *RACKS, "", "nowhere"])
    groups = dice.choice([["2001", "db8"], ["fe80", "0"]])
    address = dice.choice(
        [
            ".".join(str(dice.randrange(256)) for _ in range(4)),
            f"10.{dice.randrange(256)}.0.1",
            ":".join([*groups, *(f"{dice.randrange(65_536):x}" for _ in range(6))]) + "%eth0",
        ]
    )
    return {
        "replicas": None if dice.random() < 0.05 else replicas,
        "is_selector_known": dice.random() < 0.9,
        "selector": dice.choice(SELECTORS),
        "declared_rack": declared,
        "client_address": address,
        "client_rack": client_rack.rack(address, NETWORKS) if declared is None else declared,
    }


def tables(case: dict[str, Any], cluster_id: str) -> dict[str, Rows]:
    """The case as rows of the tables that the rule reads."""
    declared, address = case["declared_rack"], case["client_address"]
    replicas = case["replicas"] or []
    flags = ("is_leader", "is_in_sync", "is_offline")
    leaders = [each["broker_id"] for each in replicas if each["is_leader"]]
    # Configs of each broker are known from any of them.
    other = {"entity_type": "broker", "config_key": "log.dirs", "config_value": "/logs"}
    configs = [
        row | {"entity_name": str(id_)}
        for id_ in (leaders if case["is_selector_known"] else [])
        for row in (seen(BEFORE, **other), selector(case["selector"]))
    ]
    rows = {
        "fetches": [fetch(1, 5_000, answered(70), rack_id=declared, client_address=address)],
        "replicas": [
            replica_row(each["broker_id"], **{name: each[name] for name in flags})
            for each in replicas
        ],
        "brokers": [
            broker(each["broker_id"], each["rack"]) for each in replicas if each["is_rack_known"]
        ],
        "configs": configs,
    }
    return {
        name: [row | {"cluster_id": cluster_id} for row in listed] for name, listed in rows.items()
    }


def ruled(case: dict[str, Any], selector: str | None, rack: str | None) -> Preferred:
    """The reference rule, where all its inputs are known. All logs have the same length."""
    replicas = [
        Replica(
            *(each["broker_id"], each["rack"], 0, 0),
            is_in_sync=each["is_in_sync"],
            is_online=not each["is_offline"],
        )
        for each in case["replicas"]
    ]
    leader = next(n for n, each in enumerate(case["replicas"]) if each["is_leader"])
    return preferred(selector, rack, replicas.pop(leader), replicas, 0)


def expected(case: dict[str, Any], *, as_is: bool) -> Preferred:
    selector = case["selector"] if as_is else RACK_AWARE
    rack = case["declared_rack"] if as_is else case["client_rack"]
    led = case["replicas"] and any(each["is_leader"] for each in case["replicas"])
    if not led or (as_is and not case["is_selector_known"]):
        return UNKNOWN
    by_rack = selector == RACK_AWARE and rack
    if by_rack and not all(each["is_rack_known"] for each in case["replicas"]):
        return UNKNOWN
    return ruled(case, selector, rack)


def eligibility(case: dict[str, Any]) -> str:
    if case["replicas"] is None:
        return "replicas_unknown"
    if not any(each["is_leader"] for each in case["replicas"]):
        return "leader_unknown"
    if not case["is_selector_known"]:
        return "selector_unseen"
    nearest = expected(case, as_is=False)
    if nearest is UNKNOWN:
        return "racks_unknown"
    others = [
        each
        for each in case["replicas"]
        if each["rack"] == case["client_rack"] and each["is_in_sync"] and not each["is_offline"]
    ]
    is_open = nearest.reason == replica.FOLLOWER_IN_RACK and len(others) > 1
    return "offsets_unknown" if is_open else "known"


def test_the_text_chooses_what_the_rule_chooses() -> None:
    dice = random.Random(392)
    cases = {str(n): made_up(dice) for n in range(CASES)}
    rows: dict[str, Rows] = {"fetches": [], "replicas": [], "brokers": [], "configs": []}
    for cluster_id, case in cases.items():
        for name, listed in tables(case, cluster_id).items():
            rows[name] += listed
    got = compute(result_of("preferred_replicas", Conf(racks=NETWORKS)), **rows)
    assert len(got) == len(cases)
    reasons = Counter[str]()
    for row in got:
        case = cases[row["cluster_id"]]
        for name, as_is in (("expected", True), ("recommended", False)):
            choice = Preferred(row[f"{name}_replica"], row[f"{name}_reason"] or "")
            assert choice == expected(case, as_is=as_is), case
            reasons[choice.reason] += 1
        assert row["client_rack"] == case["client_rack"], case
        assert row["eligibility"] == eligibility(case), case
        reasons[row["eligibility"]] += 1
    assert len(reasons) == 7 + 1 + 6
    assert min(reasons.values()) > 50
