"""A cluster that is a dictionary, and a journal that is a list, for rules that need no broker."""

import json
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    APPLY,
    DELETE,
    SET,
    SUBTRACT,
    Change,
    Plan,
    list_entries,
)
from quotaflow.pipelines.feedback.configs.cluster_facts import ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger.leases import Item
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Ledger, Record
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import NOTHING, plan
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter
from quotaflow.pipelines.feedback.writing.write_conf import WriteConf
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.warehouse.time_ranges import Since

from ...crashes import CrashError
from ...delta_tables import NOON

PLAIN = Connection("b:9092")
TEN_MINUTES = PlanPolicy(lease_s=600)


def desired(name: str = "mallory", **others: object) -> DesiredConfig:
    """A row that desires a quota of a user."""
    row = {
        "cluster_id": "c1",
        "entity_type": "user",
        "entity_name": name,
        "config_key": "producer_byte_rate",
        "config_value": "1000",
        "prior_value": None,
        "reason": "because",
        "evidence_table": "producer_id_rates",
        "evidence_key": f"principal=User:{name}",
        "since": NOON - timedelta(hours=1),
        "priority": 10,
        "observed": 10.0,
    }
    return DesiredConfig(**(row | others))  # type: ignore[arg-type]


def planned(
    *rows: DesiredConfig,
    bounds: PlanPolicy = TEN_MINUTES,
    ledger: Ledger = NOTHING,
    now: datetime = NOON,
    after_s: float = 0,
) -> Plan:
    """The plan of these rows, so many seconds later."""
    return plan(rows, now + timedelta(seconds=after_s), bounds, PLAIN, ledger)


def whys(made: Plan) -> list[str]:
    """Why rows of a plan are blocked."""
    return [blocked.reason for blocked in made.blocked]


def names(made: Plan) -> list[str | None]:
    """The entities that a plan changes."""
    return [change.entity.entity_name for change in made.changes]


@dataclass
class FakeTables:
    """Tables that give the same rows to every query, and of which none or all exist."""

    answer: list[dict[str, Any]]
    exist: bool = True

    def rows(self, _: str, __: Since | None = None) -> list[dict[str, Any]]:
        return self.answer

    def is_made(self, _: str) -> bool:
        return self.exist


def forged(entity: ConfigEntity, key: str, value: str | None, prior: str | None) -> Record:
    """A record of a write that nobody made, with a lease that ends at noon."""
    return Record(
        event_time=NOON - timedelta(hours=1),
        run_id=f"{entity}{key}",
        number=0,
        plan_id="forged",
        change_id="forged",
        purpose=APPLY,
        step=DONE,
        entity=entity,
        config_key=key,
        operation=SET,
        operand=value,
        prior_value=prior,
        config_value=value,
        expires_at=NOON,
        reason="because",
        evidence_table="producer_id_rates",
        evidence_key="principal=User:x",
    )


@dataclass
class DictConfigs:
    """Configs by entity; `refuses` has refusals by entity, `away` those that do not answer."""

    configs: dict[ConfigEntity, dict[str, str]] = field(default_factory=dict)
    refuses: dict[ConfigEntity, str] = field(default_factory=dict)
    away: set[ConfigEntity] = field(default_factory=set)
    writes: int = 0
    says: ClusterFacts = field(default_factory=ClusterFacts)

    def read(self, entity: ConfigEntity) -> dict[str, str]:
        if entity in self.away:
            raise UnansweredError("[Error 7] RequestTimedOutError")
        return dict(self.configs.get(entity, {}))

    def refusal(self, changes: Sequence[Change]) -> str | None:
        return self.refuses.get(changes[0].entity)

    def facts(self) -> ClusterFacts:
        return self.says

    def write(self, changes: Sequence[Change]) -> str | None:
        entity = changes[0].entity
        if entity in self.refuses:
            return self.refuses[entity]
        self.writes += 1
        configs = self.configs.setdefault(entity, {})
        for change in changes:
            self._alter(configs, change)
        return None

    def _alter(self, configs: dict[str, str], change: Change) -> None:
        key, operand = change.desired.config_key, change.operation.operand or ""
        if change.operation.name == DELETE:
            configs.pop(key, None)
        elif change.operation.name == APPEND:
            configs[key] = ",".join(
                dict.fromkeys([*list_entries(configs.get(key)), *list_entries(operand)])
            )
        elif change.operation.name == SUBTRACT:
            configs[key] = ",".join(
                p for p in list_entries(configs.get(key)) if p not in list_entries(operand)
            )
        else:
            configs[key] = operand


@dataclass
class ListJournal:
    """Records in the order they were stored."""

    records: list[Record] = field(default_factory=list)

    def add(self, records: Sequence[Record]) -> None:
        self.records += records

    @property
    def ledger(self) -> Ledger:
        return Ledger.from_records(self.records)


@dataclass
class ListTopic:
    """A topic of leases that is a list. `dies_after` records the writer is killed."""

    items: list[Item] = field(default_factory=list)
    read_to: int = 0
    dies_after: int | None = None

    def read(self) -> list[Item]:
        new, self.read_to = self.items[self.read_to :], len(self.items)
        return new

    def append(self, items: Sequence[Item]) -> None:
        for item in items:
            if self.dies_after is not None:
                if self.dies_after == 0:
                    raise CrashError
                self.dies_after -= 1
            self.items.append(item)

    def reader(self) -> "ListTopic":
        """The same topic for another process."""
        return ListTopic(self.items)


@dataclass
class FileTopic:
    """A topic of leases that is a file, for processes that are killed."""

    path: Path
    read_to: int = 0

    def read(self) -> list[Item]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        new, self.read_to = lines[self.read_to :], len(lines)
        pairs = [json.loads(line) for line in new]
        return [(key.encode(), None if value is None else value.encode()) for key, value in pairs]

    def append(self, items: Sequence[Item]) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        # A full disk of the tables is no full disk of the cluster.
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))
        with self.path.open("a") as file:
            for key, value in items:
                text = None if value is None else value.decode()
                file.write(json.dumps([key.decode(), text]) + "\n")
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def topic_path(conf: Conf | WriteConf) -> Path:
    """The file that is the topic of leases of a conf."""
    section = conf.warehouse
    folder = section.checkpoint_folder if section.catalog_schema else section.folder
    return folder.with_name(f"{folder.name}-leases")


@contextmanager
def file_leases(conf: WriteConf) -> Iterator[FileTopic]:
    """In place of the topic of the cluster."""
    yield FileTopic(topic_path(conf))


@dataclass
class Clock:
    """Each reading is a millisecond later."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


def applying(
    configs: DictConfigs,
    journal: ListJournal,
    run_id: str = "r1",
    clock: Callable[[], datetime] | None = None,
    **others: object,
) -> ChangeWriter:
    """A change writer that does not wait."""
    options = {"sleep": lambda _: None} | others
    return ChangeWriter(configs, journal, run_id, clock or Clock(), **options)  # type: ignore[arg-type]
