"""What a client writes about itself limits nobody, and takes nobody out of a limit."""

from typing import Any

import hypothesis as hyp
import pytest
from hypothesis import strategies as st

from quotaflow.pipelines.results.declared import result_of

from ...rows import Row, request
from ...rule_rows import compute
from .limit_rows import ADDRESS, NO_IDS, OFFENDER, cluster, history, ids, seen
from .view_tables import by_case, picked

NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["quotaflow-shipper", "calm", "hmac.k1.0123456789abcdef01234567", "x at 10.0.0.6", "*", "loop"]
)
CHOSEN = st.fixed_dictionaries(
    {
        "client_ids": st.lists(NAMES, min_size=1, max_size=4, unique=True),
        "is_numbered": st.booleans(),
        "client_software_name": NAMES,
        "client_software_version": NAMES,
        "rack_id": NAMES,
        "group_id": NAMES,
        "transactional_id": NAMES,
        "replica_id": st.sampled_from([1, 2, 3, 5, 2**31 - 1]),
    }
)
"""What the loop writes about itself: client ids take turns, or have a number for each producer."""
PER_MINUTE = 62


def given(chosen: dict[str, Any]) -> list[Row]:
    """Requests of the loop in ten minutes: a connection for each id, which may write a batch."""
    names: list[str] = chosen["client_ids"]
    not_of_all = {"client_ids", "is_numbered", *OF_FETCH}
    owner: Row = {"principal": OFFENDER, "client_address": ADDRESS, "error_code": 0}
    owner |= {name: value for name, value in chosen.items() if name not in not_of_all}
    batch = [{"topic": "t", "partition": 0, "bytes": 9_000, "error_code": 0}]
    refused = [{"topic": "t", "partition": 0, "bytes": 0, "error_code": 29}]
    made = []
    for n in range(10 * PER_MINUTE):
        second = n * 60 / PER_MINUTE
        of_one = [names[(n + place) % len(names)] for place in range(3)]
        if chosen["is_numbered"]:
            of_one = [name + "x" * (n % 97) for name in of_one]
        same = owner | {"connection_id": f"c{n}", "broker_id": 1}
        made += [
            request(second, "INIT_PRODUCER_ID", **same, client_id=of_one[0], producer_id=n),
            request(second + 0.1, "PRODUCE", **same, client_id=of_one[1], partitions=batch),
            request(
                second + 0.2,
                "FETCH",
                **same,
                client_id=of_one[2],
                partitions=refused if n % 2 else None,
                **{name: chosen[name] for name in OF_FETCH},
            ),
        ]
    return made


OF_FETCH = ("replica_id", "rack_id")


@pytest.mark.faults
@hyp.settings(deadline=None, max_examples=2, phases=[hyp.Phase.explicit, hyp.Phase.generate])
@hyp.given(st.lists(CHOSEN, min_size=12, max_size=12))
def test_what_a_client_writes_moves_nobody(chosen: list[dict[str, Any]]) -> None:
    """Under any names the offender is the one that is limited, and nobody else."""
    assert_limited_alone(chosen)


def test_a_client_of_many_names_that_says_it_is_a_broker_is_limited() -> None:
    plain = {"client_ids": ["loop"], "is_numbered": False, "transactional_id": None}
    plain |= dict.fromkeys(("client_software_name", "client_software_version", "group_id"))
    follower = {"replica_id": 2, "rack_id": "az-a"}
    assert_limited_alone(
        [
            plain | dict.fromkeys(OF_FETCH),
            plain | follower,
            plain | follower | {"client_ids": ["broker-2-fetcher-0", "loop", "calm"]},
            plain | {"client_ids": ["a", "b", "c"], "is_numbered": True} | follower,
        ]
    )


def assert_limited_alone(chosen: list[dict[str, Any]]) -> None:
    """By the rows that the product makes of the requests of each choice."""
    innocent = [
        *(seen(n, client_address="10.0.0.6", client_pattern="calm", **NO_IDS) for n in (-9e4, 0)),
        *(seen(n, client_address="10.0.0.7", principal="User:dora", **NO_IDS) for n in (-9e4, 0)),
    ]
    requests = [
        row | {"cluster_id": f"c{case}"} for case, each in enumerate(chosen) for row in given(each)
    ]
    minutes = compute(result_of("address_clients"), requests=requests)
    cases = {}
    for case, each in enumerate(chosen):
        names = each["client_ids"]
        uses = [
            row | {"client_id": name, "client_pattern": name}
            for n, row in enumerate(ids(200, 0.5))
            for name in [names[n // 2 % len(names)] + ("x" * n if each["is_numbered"] else "")]
        ]
        of_case = [row for row in minutes if row["cluster_id"] == f"c{case}"]
        cases[f"c{case}"] = cluster(
            *innocent, address_clients=[*history(), *of_case], producer_id_uses=uses
        )
    actual = by_case(cases, "SELECT * FROM desired_configs WHERE entity_type <> 'broker'")
    limited = {case: picked(rows, "entity_name", "blocked_reason") for case, rows in actual.items()}
    assert limited == {case: [(ADDRESS, None)] for case in cases}
