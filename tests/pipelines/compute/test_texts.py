"""Every rule's text, bound against the declared tables: what it reads, yields, and may not use."""

import re
from collections.abc import Iterator

import pytest

from quotaflow.pipelines.compute import local, texts
from quotaflow.pipelines.compute.computation import CARRIED, Computation
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.schemas.tables.catalog import TABLES

from .rule_tables import tables_of

RACKS = {"10.1.0.0/16": "az-1", "fd00::/8": "az-2"}
RULE = {"name": "slow", "metric": "*.queue.time", "above": 10, "for_s": 20, "stale_s": 60}
CONF = Conf.model_validate(
    {
        "racks": RACKS,
        "alerts": {"rules": [RULE]},
        "producer_ids": {"quotas": {"alice": 2.0}},
    }
)
RESULTS = [
    pytest.param(result, id=result.rule.name)
    for job in JOBS.values()
    if job.results
    for result in job.results(CONF)
]
# Their rows depend on the order in which rows are read, or differ between runs.
UNSTABLE = ("any_value", "approx_", "first(", "last(", "random(", "now(", "current_timestamp")


def all_texts(result: Result) -> Iterator[str]:
    for sql in texts.texts_of(result.rule):
        yield re.sub(r"--[^\n]*", "", sql)


@pytest.mark.parametrize("result", RESULTS)
def test_a_text_yields_the_columns_of_its_table(result: Result) -> None:
    relations = {table: TABLES[table].arrow.empty_table() for table in TABLES}
    relations[CARRIED] = result.table.arrow.empty_table()
    rows = local.compute_over(Computation(result, (EVER,), 3_600), relations)
    assert rows.schema.equals(result.table.arrow)
    assert rows.num_rows == 0, "no facts, no rows"


@pytest.mark.parametrize("result", RESULTS)
def test_a_declaration_names_what_its_text_reads(result: Result) -> None:
    declared = {lookup.table.name for lookup in result.lookups}
    read = set(tables_of(result.rule))
    own = {result.facts.name} if result.facts.name not in declared else set()
    assert read == declared | own
    carried = CARRIED in set().union(*map(texts.words, all_texts(result)))
    assert carried == bool(result.carry_s)
    assert bool(result.split.key) or not result.carry_s


@pytest.mark.parametrize("result", RESULTS)
def test_a_key_has_columns_that_are_there(result: Result) -> None:
    key = set[str]().union(*map(texts.words, result.split.key)) - {"kafka_string"}
    facts, rows = set(result.facts.column_names), set(result.table.column_names)
    assert key <= facts
    assert key <= rows or not (result.split.overlaps or result.carry_s)


@pytest.mark.parametrize("result", RESULTS)
def test_new_facts_are_known_to_matter_without_nested_columns(result: Result) -> None:
    """They would be read of every new fact, and cost more than all flat ones."""
    assert not {"partitions", "body"} & texts.words(result.relevant)


@pytest.mark.parametrize("result", RESULTS)
def test_no_text_depends_on_the_order_of_rows(result: Result) -> None:
    named = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, UNSTABLE))})")
    assert [word for sql in all_texts(result) for word in named.findall(sql.lower())] == []


def test_every_shared_view_is_read() -> None:
    read = {name for param in RESULTS for name in param.values[0].rule.views}
    assert read == set(texts.shared_views())
