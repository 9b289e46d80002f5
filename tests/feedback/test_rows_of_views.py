"""The simulation plants rows of the shapes that the views make, and no others."""

import random
from dataclasses import replace
from typing import Any

import pytest

from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Ledger, OwnedConfig
from quotaflow.pipelines.feedback.planning import plan_inputs
from quotaflow.pipelines.feedback.planning.quota_plan import LIMITS

from ..pipelines.feedback.fake_configs import forged
from ..rows import Row, at
from ..schemas.views import test_default_quota, test_expiration_proposals, test_producer_id_limits
from ..schemas.views.limit_rows import ADDRESS, OFFENDER, cluster, quiet, settings
from ..schemas.views.memory_tables import MemoryTables
from ..schemas.views.view_tables import by_case, make_tables
from .simulator import KINDS, PLANTS, Offender, Simulation

Shape = tuple[Any, ...]
GROUPED = (*test_producer_id_limits.OFFENDERS.values(), *test_default_quota.CASES.values())
CASES = {
    **{name: tables for alike in GROUPED for name, tables in alike.items()},
    **{name: case[0] for name, case in test_expiration_proposals.EXPIRATIONS.items()},
    "a user alone": cluster(settings=settings(probe__producer_ids_rate="accepted")),
}
_COLUMNS = ("entity_name", "config_value", "observed", "least_value", "usage_p99", "history_s")
_MORE_COLUMNS = ("quota_in_force", "lease_s", "entity_client_id", "blocked_reason")


def shape(row: DesiredConfig) -> Shape:
    """What a plan distinguishes: the config, and which columns have a value."""
    columns = (*_COLUMNS, *_MORE_COLUMNS)
    given = tuple(name for name in columns if getattr(row, name) is not None)
    table = row.evidence_table
    return row.entity_type, row.config_key, table, row.direction, row.renew_only, given


def test_the_simulation_plants_each_shape_of_a_limit_and_no_other() -> None:
    made = by_case(CASES, "SELECT * FROM desired_configs")
    rows = [plan_inputs.worded(row) for of_case in made.values() for row in of_case]
    of_views = {shape(row) for row in rows if row.config_key in LIMITS}
    planted = set()
    for kind in KINDS:
        crowd = [Offender("10.0.0.1", "steady", 20.0, PLANTS["steady"], 3, kind=kind)]
        simulation = Simulation(crowd, random.Random(0), is_signed=False)
        for _ in range(6):
            planted |= {shape(row) for row in simulation.rows()}
            simulation.cycle += 1
    assert planted == of_views


def strangers(*more: Row, listed: tuple[str, ...] = ()) -> list[str]:
    """Who else uses an address that we limited for its offender five minutes ago."""
    one = Offender(ADDRESS, "steady", 20.0, PLANTS["steady"], 9)
    entity, key = one.key
    evidence = f"principal={OFFENDER} client_address={ADDRESS}"
    record = replace(forged(entity, key, "1", None), evidence_key=evidence)
    owned = {one.key: OwnedConfig(None, "1", at(300), None, record, at(300))}
    tables = MemoryTables()
    make_tables(tables, cluster(*more))
    return list(plan_inputs.strangers(tables, Ledger(owned=owned), listed).values())


def test_a_stranger_at_a_limited_address_is_seen_although_nobody_offends() -> None:
    there = {"client_address": ADDRESS}
    assert strangers() == []
    assert strangers(quiet(120, **there)) == []
    assert strangers(quiet(480)) == []
    assert strangers(quiet(480, **there)) == ["User:dora"]
    assert strangers(quiet(480, **there, requests=0)) == []
    assert strangers(quiet(480, **there), listed=(f"{ADDRESS}/32",)) == []
    assert strangers(quiet(480, **there), listed=("10.0.0.0/24",)) == []


@pytest.mark.parametrize(
    ("work", "seen"),
    [
        ({"data_requests": 20, "data_bytes": 65_536}, True),
        ({"data_requests": 19, "data_bytes": 65_536}, False),
        ({"data_requests": 20, "data_bytes": 65_535}, False),
        ({"data_requests": 20, "data_bytes": 65_536, "producer_ids": 2}, False),
        ({"data_requests": 21, "data_bytes": 65_536, "producer_ids": 2}, True),
    ],
)
def test_another_program_of_the_offender_counts_by_what_it_moves(work: Row, seen: bool) -> None:
    there = quiet(480, client_address=ADDRESS, principal=OFFENDER, **work)
    assert strangers(there) == ([f"another program of {OFFENDER}"] if seen else [])
