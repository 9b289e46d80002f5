"""Blast radius: few entities in a plan and a day, the first of them alone, and never in the way of
giving back."""

import re
from dataclasses import replace
from datetime import timedelta

from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy

from .... import case_tables
from ....cases import cases
from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, names, planned

MINUTE = timedelta(minutes=1)
DEAD = 20 * MINUTE
RATE = "leader.replication.throttled.rate"


def bounded(
    rows: list[DesiredConfig], radius: BlastRadius, journal: ListJournal, at: float = 0
) -> Plan:
    bounds = PlanPolicy(lease_s=86_400, blast_radius=radius)
    ledger = journal.ledger
    return planned(*rows, bounds=bounds, ledger=ledger, now=NOON + at * MINUTE)


def written(names: list[str], at: float, journal: ListJournal | None = None) -> ListJournal:
    """A journal with quotas of these users that one run wrote so many minutes after noon."""
    journal = journal or ListJournal()
    made = planned(*[desired(name) for name in names], bounds=PlanPolicy(lease_s=86_400))
    applying(DictConfigs(), journal, f"r{at}", Clock(NOON + at * MINUTE)).run("p", made.changes)
    return journal


USERS = [desired(f"u{n:05}") for n in range(200)]
SEEN = BlastRadius(results_at=NOON, dead_time=DEAD)


@cases(
    ("radius", "journal", "count", "why"),
    *case_tables.rows(
        __file__, "so_many_quotas_change", BlastRadius, ListJournal, written, replace, SEEN=SEEN
    ),
    ("short", SEEN, written([f"x{n}" for n in range(18)], -30), 2, "18 entities were written"),
    ("over", SEEN, written([f"x{n}" for n in range(20)], -30), 0, "per_day is 20"),
    ("a day later", SEEN, written([f"x{n}" for n in range(20)], -1441), 1, "changed first"),
)
def test_so_many_quotas_change(
    radius: BlastRadius, journal: ListJournal, count: int, why: str
) -> None:
    made = bounded(USERS, radius, journal)
    assert names(made) == [row.entity_name for row in USERS[:count]]
    assert len(made.blocked) == len(USERS) - count
    assert re.search(why, made.blocked[-1].reason)


def test_one_that_changes_all_day_takes_one_place_of_the_day() -> None:
    journal = ListJournal()
    for n in range(20):
        journal = written(["x"], -60 - n, journal)
    assert len(bounded(USERS, SEEN, journal).changes) == 5
    for n in range(19):
        journal = written([f"y{n}"], -90 - n, journal)
    assert "20 entities were written in 24 hours" in bounded(USERS, SEEN, journal).blocked[0].reason
    assert bounded([desired("x")], SEEN, journal).blocked == ()


def test_users_client_ids_and_both_share_one_bound() -> None:
    rows = [
        *USERS[:2],
        desired("u", entity_client_id="c"),
        *(desired(f"c{n}", entity_type="client-id") for n in range(4)),
    ]
    journal = written(["x"], -30)
    client = planned(desired("c", entity_type="client-id"))
    applying(DictConfigs(), journal, "c", Clock(NOON - 30 * MINUTE)).run("p", client.changes)
    made = bounded(rows, SEEN, journal)
    assert len(made.changes) == 5


def broker(name: str, key: str = RATE) -> DesiredConfig:
    return desired(name, entity_type="broker", config_key=key, config_value="9000000")


@cases(
    ("moves", "expected"),
    ("no move is known", (), ["1"]),
    ("one move", (frozenset({"1", "2", "3"}),), ["1", "2", "3"]),
    ("the first of two moves", (frozenset({"1", "3"}), frozenset({"2", "4"})), ["1", "3"]),
    ("another move", (frozenset({"2", "3"}),), ["1"]),
)
def test_one_broker_or_those_of_one_move(
    moves: tuple[frozenset[str], ...], expected: list[str]
) -> None:
    rows = [broker(str(n)) for n in (1, 2, 3, 4)]
    assert names(bounded(rows, BlastRadius(moves=moves), ListJournal())) == expected


def test_giving_back_and_renewing_are_never_counted() -> None:
    journal = written([f"x{n}" for n in range(20)], -1000)
    removed = [desired(f"x{n}", config_value=None, prior_value="1000") for n in range(10)]
    given = [desired(f"y{n}", prior_value="9", direction="revert") for n in range(10)]
    renewed = [desired(f"x{n}", prior_value="1000") for n in range(10, 20)]
    made = bounded([*removed, *given, *renewed], SEEN, journal)
    assert (len(made.changes), made.blocked) == (30, ())
    assert sum(change.operation.name == "RENEW" for change in made.changes) == 10


def test_another_cluster_has_a_day_of_its_own() -> None:
    journal = written([f"x{n}" for n in range(20)], -60)
    other = desired("u", cluster_id="c2")
    assert names(bounded([other], SEEN, journal)) == ["u"]


def test_without_a_radius_nothing_is_bounded() -> None:
    made = planned(*USERS)
    assert len(made.changes) == len(USERS)
