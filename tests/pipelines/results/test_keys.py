"""Results split by keys: the parts of any split are the rows of the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.computation import KeyPart
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS

from ...examples import EXPENSIVE
from ...invariants.made_facts import made_facts
from ...rule_rows import compute
from .splits import sorted_rows

ALERT = {"name": "slow", "metric": "*.latency.*", "above": 1, "for_s": 20, "stale_s": 60}
CONF = Conf.model_validate(
    {"alerts": {"rules": [ALERT]}, "producer_ids": {"default_quota_per_s": 1.0}}
)
KEYED = {
    each.rule.name: each
    for job in JOBS.values()
    if job.results
    for each in job.results(CONF)
    if each.split.key
}


@pytest.mark.parametrize("name", KEYED)
@EXPENSIVE
@given(seed=st.integers(0, 2**32), parts=st.integers(2, 7))
def test_parts_by_key_are_the_whole(name: str, seed: int, parts: int) -> None:
    result = KEYED[name]
    names = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
    tables = {each: rows for each, rows in made_facts(seed, CONF).items() if each in names}
    apart = [
        row
        for number in range(parts)
        for row in compute(result, keys=KeyPart(number, parts), **tables)
    ]
    assert sorted_rows(apart) == sorted_rows(compute(result, **tables))
