"""Inputs of a plan that were never made: they count as empty, and nothing is planned from them.

Brokers may have no telemetry to give, or no request log: then no job ever makes the tables of
these. An answer is made once all that it is computed from is there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from quotaflow.pipelines.feedback.planning import evidence_checks, preflight
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

_BY_NAME = {answer.name: answer for answer in ANSWERS}
_READ = """
    desired_configs protected_principals quota_usage address_clients current_brokers current_topics
    current_settings config_writers throttle_changes other_config_managers client_instances
    current_quality feedback_dead_times replication_throttles
"""
"""Tables and views that the queries of a plan name."""
_SNAPSHOT = "snapshot"
_EVERYWHERE = """
    current_configs current_client_quotas current_brokers current_topics protected_principals
"""
"""Views that each row needs: configs, quotas, and who is protected, as a snapshot read them."""
# Live clients that a subscription could harm: unknown is not none.
_SUBSCRIPTIONS = "subscription_proposals"


@dataclass(frozen=True, slots=True)
class UnmadeInputs:
    """`causes`: evidence that nothing may rest on -> the tables that were never made."""

    causes: Mapping[str, frozenset[str]]

    @property
    def unusable(self) -> dict[str, str]:
        """The evidence, each with the reason."""
        return {name: _reason(tables) for name, tables in self.causes.items() if tables}

    @property
    def lines(self) -> list[str]:
        """What was never made, how it is made, and which evidence is missing without it."""
        by_command: dict[str, set[str]] = {}
        for table in frozenset[str]().union(*self.causes.values()):
            by_command.setdefault(fillers.filler(table), set()).add(table)
        return [self._line(command, by_command[command]) for command in sorted(by_command)]

    def _line(self, command: str, tables: set[str]) -> str:
        evidence = sorted(name for name, causes in self.causes.items() if causes & tables)
        return (
            f"never made: {', '.join(sorted(tables))} (`quotaflow {command}` does that): nothing "
            f"is planned that rests on {', '.join(evidence)}"
        )


def read(tables: Reader) -> tuple[UnmadeInputs, Reader]:
    """The inputs of a plan that were never made, and the tables with these as ones without rows.

    That the pipeline never ran at all stays an error: reading its progress says how it is begun.
    """
    is_made = cache(tables.is_made)
    everywhere = {table for table in _read_for_all() if not is_made(table)}
    causes = {}
    for evidence, answer in evidence_checks.PROPOSED_BY.items():
        needed = set(_unmade(answer, is_made))
        if answer == _SUBSCRIPTIONS:
            needed |= {table for table in preflight.tables() if not is_made(table)}
        causes[evidence] = frozenset(everywhere | needed)
    named = views.dependencies(_READ)[0]
    unmade = frozenset(name for name in named if not is_made(name)) - {PIPELINE_PROGRESS.name}
    return UnmadeInputs(causes), tables.with_empty(unmade) if unmade else tables


def _read_for_all() -> set[str]:
    """Tables of a snapshot that each row needs."""
    read = views.dependencies(_EVERYWHERE)[0]
    return {table for table in read if fillers.filler(table) == _SNAPSHOT}


def _unmade(name: str, is_made: Callable[[str], bool]) -> Iterator[str]:
    """What has to be made before this table is: the tables themselves, in place of answers."""
    if is_made(name):
        return
    # Of an answer that is made nobody needs the inputs: to parse its views takes time.
    inputs = _BY_NAME[name].inputs if name in _BY_NAME else ()
    missing = [cause for each in inputs for cause in _unmade(each, is_made)]
    yield from missing or [name]


def _reason(tables: frozenset[str]) -> str:
    first = min(tables)
    return f"it rests on {first}, which was never made: `quotaflow {fillers.filler(first)}` does"
