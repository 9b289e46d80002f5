"""The heap that producer ids take at brokers: at leaders and followers (KIP-936)."""

from ...rows import LONG_AGO, Row, active, at, counted, row, use
from .view_tables import Tables, assert_shown, picked, view


def _replica(broker_id: int, **others: object) -> Row:
    """The replica of partition 0 of `t` at the broker, which broker 1 leads."""
    given = {"topic": "t", "topic_id": "T", "partition": 0, "broker_id": broker_id}
    return row("replicas", 0, given | others)


FOLLOWED = [active(0, n) for n in range(10)]
OF_REPLICAS: dict[str, tuple[Tables, list[tuple[int, int, int]]]] = {
    "followers have what the leader has": (
        {"replicas": [_replica(1), _replica(2), _replica(3)]},
        [(1, 10, 0), (2, 10, 0), (3, 10, 0)],
    ),
    "one replica": ({"replicas": [_replica(1)]}, [(1, 10, 0)]),
    "replicas of another partition and topic": (
        {
            "replicas": [
                _replica(1),
                _replica(2, partition=1),
                _replica(2, topic="u", topic_id="U"),
            ]
        },
        [(1, 10, 0)],
    ),
    "a replica that was moved away": (
        {
            "replicas": [
                _replica(1),
                _replica(2),
                _replica(2, event_time=at(9), is_removed=True),
                _replica(3),
            ]
        },
        [(1, 10, 0), (3, 10, 0)],
    ),
    "a replica that changed": (
        {"replicas": [_replica(1), _replica(2), _replica(2, event_time=at(9))]},
        [(1, 10, 0), (2, 10, 0)],
    ),
    "no snapshot of replicas": ({}, [(1, 10, 10)]),
}


def test_heap_is_forecast_from_what_comes_and_how_long_it_stays() -> None:
    active_rows = [active(0, n) for n in range(10)] + [active(100, 1_000 + n) for n in range(500)]
    active_rows += [active(100, 5, topic="u"), active(100, 9, is_removed=True), active(100, 4)]
    (heap,) = view(
        "producer_id_heap", {"active_producers": active_rows} | {"producer_id_uses": [use(0, 5)]}
    )
    names = ("entries", "ids", "ids_of_unknown_owner", "entries_per_s", "heap_bytes")
    assert picked([heap], *names) == [(510, 509, 508, 5.01, 216_240)]
    assert heap["forecast_entries"] == 432_864
    assert heap["recommended_expiration_ms"] == int(64 * 1024 * 1024 / (5.01 * 424) * 1_000)
    assert (heap["bytes_per_entry"], heap["expiration_ms"]) == (424, 86_400_000)


def test_ids_that_another_broker_leads_now_are_not_new() -> None:
    active_rows = [active(0, n) for n in range(10)] + [
        active(100, n, is_removed=True) for n in range(10)
    ]
    active_rows += [active(100, n, broker_id=2) for n in range(10)]
    heaps = view("producer_id_heap ORDER BY broker_id", {"active_producers": active_rows})
    names = ("broker_id", "entries", "entries_per_s", "forecast_entries")
    assert picked(heaps, *names) == [(2, 10, 0.0, 10)]


def test_followers_have_the_ids_of_their_leader() -> None:
    shown = {
        case: ({"active_producers": FOLLOWED} | content, heaps)
        for case, (content, heaps) in OF_REPLICAS.items()
    }
    names = ("broker_id", "entries", "entries_of_unknown_replicas")
    assert_shown(shown, "producer_id_heap ORDER BY broker_id", *names)


def test_what_comes_fills_the_heap_of_followers_too() -> None:
    """A broker that follows one partition and leads another has the entries of both."""
    led = [active(0, 1), *(active(100, n) for n in range(2, 102))]
    other = [active(100, n, topic="u", broker_id=2) for n in range(500, 550)]
    replicas = [_replica(1), _replica(2), _replica(2, topic="u", topic_id="U")]
    replicas += [_replica(3, cluster_id="other")]
    content = {"active_producers": [*led, *other], "replicas": replicas}
    heaps = view("producer_id_heap ORDER BY broker_id", content)
    names = ("broker_id", "entries", "ids", "entries_per_s", "heap_bytes", "forecast_entries")
    assert picked(heaps, *names) == [
        (1, 101, 101, 1.0, 101 * 424, 86_400),
        (2, 151, 151, 1.5, 151 * 424, 129_600),
    ]


def test_snapshots_that_found_nothing_new_took_time_all_the_same() -> None:
    active_rows = [active(0, 1), *(active(60, n) for n in range(2, 302))]
    quiet = counted(3_000, 0, "in", 301, job="snapshot", target="active_producers")
    (heap,) = view(
        "producer_id_heap", {"active_producers": active_rows, "pipeline_progress": [quiet]}
    )
    assert picked([heap], "entries_per_s", "snapshot_time") == [(0.1, at(3_000))]


def test_heap_that_fits_needs_no_advice() -> None:
    (heap,) = view("producer_id_heap", {"active_producers": [active(0, 1)]})
    assert picked([heap], "entries_per_s", "recommended_expiration_ms") == [(None, None)]
    assert heap["snapshot_time"] > LONG_AGO
