"""Whose addresses a plan limits: a loop's alone, and none of brokers, of others or of a machine."""

from ipaddress import IPv4Address
from typing import Any

from ...rows import Row, at
from .limit_rows import (
    ADDRESS,
    BROKERS,
    HISTORY_S,
    NO_IDS,
    Outcomes,
    assert_steps,
    cluster,
    history,
    ids,
    loop,
    quiet,
    seen,
    settings,
)
from .view_tables import Tables, assert_outcomes

CALM = {"client_pattern": "calm", **NO_IDS}
"""Another program of the offender's user, which takes no ids."""


def busy(second: float, requests: int, data_bytes: int, **others: Any) -> Row:
    """A minute in which another program moved records."""
    return seen(second, **CALM | {"data_requests": requests, "data_bytes": data_bytes} | others)


def at_address(address: str, **others: Any) -> Tables:
    """A cluster whose offender has this address."""
    return cluster(
        address_clients=[*history(), *loop(client_address=address)],
        producer_id_uses=ids(client_address=address),
        **others,
    )


def unmeasured(rows: list[Row]) -> list[Row]:
    """Rows that do not tell what programs move."""
    return [row | {"data_requests": None, "data_bytes": None} for row in rows]


_HOUR_S, _DAY_S = 3_600, 86_400
_TEN_NETWORK = "10.0.0.0/8 0a000000 0affffff"
_DOCUMENTED = f"2001:db8::/32 20010db8{'0' * 24} 20010db8{'f' * 24}"
PROGRAMS: Outcomes = {
    ("address", "other_programs"): {
        "another program of the user": cluster(*(busy(n, 100, 50_000) for n in (-_DAY_S, 0))),
        "a job of the user that runs for fifty minutes": cluster(
            *(busy(600 - 60 * n, 9_000, 9_000_000) for n in range(1, 51))
        ),
        "a job of the user that ran for a minute, six days ago": cluster(
            busy(-6 * _DAY_S, 30, 70_000)
        ),
        "a job with one id of its own": cluster(
            busy(0, 3_000, 900_000, producer_ids=1, allocating_connections=1)
        ),
        "jobs of one run each, whose names are never the same": cluster(
            *(busy(-600 * n, 5, 9_000, client_pattern=f"job {n}") for n in range(10))
        ),
        "client ids of a library, which an offender shares with others": cluster(
            *(
                busy(-600 * n, 95_000, 9_000_000, client_pattern="producer-*", producer_ids=4)
                for n in range(1_000)
            ),
            address_clients=[
                *history(),
                *loop(client_pattern="producer-*", data_requests=95_000, data_bytes=9_000_000),
            ],
        ),
        "a loop of a day, and a job of ten minutes that has its client id": cluster(
            *(seen(-60 * n) for n in range(1_440)),
            address_clients=[*history(), *loop(data_requests=9_000, data_bytes=900_000)],
        ),
    },
    ("address", None): {
        "another program, and conf lists the address": cluster(
            *(busy(n, 100, 50_000) for n in (-_DAY_S, 0)),
            settings=settings(producer_ids__limited_addresses=ADDRESS),
        ),
        "a job longer ago than the history": cluster(busy(-HISTORY_S - 3_000, 9_000, 9_000_000)),
        "one request under another client id": cluster(busy(-60, 1, 1_000)),
        "one large fetch under another client id": cluster(busy(-60, 1, 50 * 2**20)),
        "a small request under another client id in each hour": cluster(
            *(busy(-_HOUR_S * n, 1, 100) for n in range(168))
        ),
        "requests under another client id that move nothing": cluster(
            *(seen(-60 * n, **CALM, requests=5_000) for n in range(60))
        ),
        "a loop that writes a few batches with each id": cluster(
            address_clients=[*history(), *loop(data_requests=360, data_bytes=5_000_000)]
        ),
        "a loop whose last batches come in the next minute": cluster(
            seen(600, **NO_IDS, data_requests=120, data_bytes=5_000_000)
        ),
        "names of one producer each, with what these write in three minutes": cluster(
            *(
                seen(
                    60 * n,
                    **{"client_pattern": f"name {n // 3}", "producer_ids": int(n % 3 == 0)},
                    **{"data_requests": 3, "data_bytes": 900_000},
                )
                for n in range(-90, 10)
            )
        ),
        "names of the loop that live for a minute each": cluster(
            *(
                seen(n, client_pattern=f"name {n}", producer_ids=1, last_seen=at(n + 60))
                for n in range(540)
            )
        ),
        "a loop of two names": cluster(
            address_clients=[*history(), *loop(), *loop(client_pattern="second")]
        ),
    },
}
OF_EACH_MACHINE = (
    *(str(IPv4Address(0)), "127.0.0.1", "169.254.10.1", "224.0.0.1", "255.255.255.255"),
    *("0:0:0:0:0:0:0:0", "0:0:0:0:0:0:0:1", "::1", "fe80:0:0:0:1:2:3:4%eth0"),
    "ff02:0:0:0:0:0:0:1",
)
ADDRESSES: Outcomes = {
    ("address", "special_address"): {
        **{f"an address of each machine: {each}": at_address(each) for each in OF_EACH_MACHINE},
        "a multicast address, though conf lists it": at_address(
            "224.0.0.1",
            settings=settings(producer_ids__limited_addresses="224.0.0.1 e0000001 e0000001"),
        ),
        "an address of this machine that conf lists with all others": at_address(
            "127.0.0.5",
            settings=settings(producer_ids__limited_addresses="0.0.0.0/0 00000000 ffffffff"),
        ),
    },
    ("address", "broker_address"): {
        "a broker fetches from the address": cluster(
            quiet(0, client_address=ADDRESS, replica_id=2)
        ),
        "a former broker fetched from the address": cluster(
            seen(-_DAY_S, **NO_IDS, replica_id=9),
            brokers=[
                *BROKERS,
                BROKERS[0] | {"broker_id": 9, "event_time": at(-2 * _DAY_S)},
                BROKERS[0] | {"broker_id": 9, "is_removed": True, "event_time": at(-60)},
            ],
        ),
        "the address of a broker's listener": cluster(
            address_clients=[*history(), *loop(client_address="10.0.1.2")],
            producer_id_uses=ids(client_address="10.0.1.2"),
        ),
    },
    ("address", "protected_principal"): {
        "a shipper's address, though conf lists it": cluster(
            quiet(-60, client_address=ADDRESS, principal="User:shipper"),
            settings=settings(producer_ids__limited_addresses=ADDRESS),
        ),
        "quotaflow's own address": cluster(quiet(-60, client_address=ADDRESS, principal="User:us")),
    },
    ("address", "protected_address"): {
        "an address that conf protects": cluster(
            settings=settings(producer_ids__protected_addresses=ADDRESS)
        ),
        "a network that conf protects": cluster(
            settings=settings(producer_ids__protected_addresses=f"192.0.2.7\n{_TEN_NETWORK}")
        ),
        "a network of IPv6 that conf protects": at_address(
            "2001:db8:0:0:0:0:0:7", settings=settings(producer_ids__protected_addresses=_DOCUMENTED)
        ),
    },
    ("address", None): {
        "it fetches as a follower that no broker is": cluster(seen(0, **NO_IDS, replica_id=77)),
        "another network that conf protects": cluster(
            settings=settings(
                producer_ids__protected_addresses="10.0.0.0/30 0a000000 0a000003\n" + _DOCUMENTED
            )
        ),
        "another principal, and conf lists the network": cluster(
            quiet(-_DAY_S, client_address=ADDRESS),
            settings=settings(producer_ids__limited_addresses=_TEN_NETWORK),
        ),
        "an address of this machine that conf lists by itself": at_address(
            "127.0.0.5",
            settings=settings(producer_ids__limited_addresses="127.0.0.5 7f000005 7f000005"),
        ),
        "the advertised host of brokers is a name": cluster(
            brokers=[row | {"host": "broker-1.internal"} for row in BROKERS]
        ),
    },
    ("address", "address_history_short"): {
        "nobody counted what programs moved": cluster(
            address_clients=unmeasured([*history(), *loop()])
        ),
        "a week of which nobody counted what programs moved": cluster(
            address_clients=[*unmeasured(history()), *loop()]
        ),
    },
}


def test_other_programs_at_its_address_forbid_a_limit_and_its_own_do_not() -> None:
    assert_steps(PROGRAMS)


def test_where_an_address_is_forbids_a_limit() -> None:
    assert_steps(ADDRESSES)


def listed(*others: Row) -> Tables:
    """A cluster whose conf lists the address of the offender, and others there."""
    return cluster(*others, settings=settings(producer_ids__limited_addresses=ADDRESS))


def _at_once(second: float, connections: int, principal: str = "User:bob") -> Row:
    return seen(second, **NO_IDS, principal=principal, other_connections=connections)


FLOORS = {
    (1.0,): {
        "nobody else": listed(),
        "another user with few connections": listed(_at_once(0, 10)),
        # Whoever offends could choose any client id for idle connections.
        "idle connections of the offender's user": listed(
            seen(0, **CALM | {"other_connections": 5_000})
        ),
        "another loop at the address": listed(
            *loop("User:mallory", client_pattern="loop-2", other_connections=0)
        ),
    },
    (3.0,): {"another program of the user": listed(busy(0, 100, 90_000, other_connections=25))},
    (4.0,): {"its busiest minute counts": listed(_at_once(-60, 31), _at_once(0, 9))},
    (5.0,): {"another user of six days ago": listed(_at_once(-6 * _DAY_S, 45))},
    (7.0,): {
        "two users may connect at once": listed(_at_once(-60, 30), _at_once(0, 40, "User:carol"))
    },
}


def test_a_limit_lets_all_others_at_a_listed_address_connect_at_once() -> None:
    of_offender = "config_key = 'connection_creation_rate' AND subject LIKE 'User:erin%'"
    assert_outcomes(FLOORS, f"desired_configs WHERE {of_offender}", "least_value")
