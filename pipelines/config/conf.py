"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults are in the sections alone. A YAML file and --set only override them.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from quotaflow.pipelines.config.alerts import AlertsSection
from quotaflow.pipelines.config.base import Section, problems
from quotaflow.pipelines.config.cluster import ClusterSection, Teams
from quotaflow.pipelines.config.feedback import FeedbackSection
from quotaflow.pipelines.config.ingest import (
    FetchSessionsSection,
    IngestSection,
    PayloadsSection,
    PrivacySection,
)
from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.config.monitoring import MonitoringSection
from quotaflow.pipelines.config.plan import DEFAULT_EXCLUDED, PlanSection, ReplicationSection
from quotaflow.pipelines.config.results import (
    CLIENT_ID_RACKS,
    PricesSection,
    ProducerIdsSection,
    QuotasSection,
    RackPatterns,
    Racks,
    ResultsSection,
)
from quotaflow.pipelines.config.runtime import SparkSection, WarehouseSection
from quotaflow.pipelines.config.secrets import (
    SecretsSection,
    in_scope,
)
from quotaflow.pipelines.config.serve import ServeSection
from quotaflow.pipelines.config.upkeep import HealthSection, QualitySection, UpkeepSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.udfs.rules.pseudonym import ADDRESS

# Values of these are text for Kafka and Spark: 0123 or no must stay as they are written.
TEXT_MAPS = {("kafka", "properties"), ("spark", "conf"), ("warehouse", "store")}
_MAPS = {
    *TEXT_MAPS,
    ("ingest", "sampling"),
    ("producer_ids", "quotas"),
    ("replication", "brokers"),
    ("upkeep", "retention_days"),
    ("alerts", "webhook"),
}

_NUMBER_MAPS = {("ingest", "sampling"), ("producer_ids", "quotas"), ("upkeep", "retention_days")}
"""Maps whose values have no = in them."""

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'"
_QUOTED_ENTRY = re.compile(
    rf"(?P<section>\w+)\.(?P<name>\w+)\.(?P<leaf>{_QUOTED})=(?P<text>.*)", re.DOTALL
)
"""A pair whose name of an entry is in quotes."""


def read(file: Path) -> dict[str, Any]:
    """The sections of a file. Raises ConfigError when it cannot be read or is no YAML."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read conf {file}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        # Not the line itself, which may have a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{file} is not YAML: line {line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(f"{file} is not YAML: it has bytes that are no text") from None
    if not isinstance(values, dict | None):
        raise ConfigError(f"{file} must hold sections such as kafka: and warehouse:")
    # A section with all lines commented out is None in YAML. It counts as missing.
    return {name: section for name, section in (values or {}).items() if section is not None}


def override(values: dict[str, Any], pair: str) -> None:
    """Set one value. Raises ConfigError if the pair is not section.key=value.

    The name of an entry of a map may be in quotes, so that it can have = in it.
    """
    key, (section, name, leaf), text = _split(pair)
    is_text = leaf is not None and (section, name) in TEXT_MAPS
    path = [section] if leaf is None else [section, name]
    holder = values
    for part in path:
        child = holder.get(part)
        holder[part] = {} if child is None else child
        holder = holder[part]
        if not isinstance(holder, dict):
            raise ConfigError(f"--set {key}: {part} in conf must hold keys and values")
    holder[name if leaf is None else leaf] = text if is_text else _parsed(key, text)


def _split(pair: str) -> tuple[str, tuple[str, str, str | None], str]:
    """The key, its section, name and entry of a map, and the text of the value."""
    quoted = _QUOTED_ENTRY.fullmatch(pair)
    if quoted and (quoted["section"], quoted["name"]) in _MAPS:
        section, name, text = quoted["section"], quoted["name"], quoted["text"]
        key = f"{section}.{name}.{quoted['leaf']}"
        return key, (section, name, str(_parsed(key, quoted["leaf"]))), text
    key, equals, text = pair.partition("=")
    section, _, rest = key.partition(".")
    if not equals or not rest:
        # The text may have a secret: only its key is printed.
        raise ConfigError(f"--set {key}: write section.key=value, e.g. warehouse.path=/data")
    name, _, leaf = rest.partition(".")
    if not leaf or (section, name) not in _MAPS:
        return key, (section, rest, None), text
    if "=" in text and (section, name) in _NUMBER_MAPS:
        raise ConfigError(
            f"--set {key}: quote a name that has = in it, and the pair for the shell: "
            f"--set '{section}.{name}.\"CN=a,OU=b\"=5'"
        )
    return key, (section, name, leaf), text


def _parsed(key: str, text: str) -> Any:
    try:
        plain_items = list(_plain_items(text))
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"--set {key}: the value is not YAML: quote it") from None
    if any("=" in item for item in plain_items):
        raise ConfigError(
            f"--set {key}: quote each name that has = in it, because YAML splits a list at each "
            f"comma: --set '{key}=[\"User:CN=a,OU=b\"]'"
        )
    return value


def _plain_items(text: str) -> Iterator[str]:
    """What a list in YAML has without quotes."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.SequenceStartEvent)
        depth -= isinstance(event, yaml.SequenceEndEvent)
        if depth and isinstance(event, yaml.ScalarEvent) and event.style is None:
            yield event.value


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: KafkaSection = KafkaSection()
    cluster: ClusterSection = ClusterSection()
    secrets: SecretsSection = SecretsSection()
    warehouse: WarehouseSection = WarehouseSection()
    ingest: IngestSection = IngestSection()
    payloads: PayloadsSection = PayloadsSection()
    producer_ids: ProducerIdsSection = ProducerIdsSection()
    quotas: QuotasSection = QuotasSection()
    fetch_sessions: FetchSessionsSection = FetchSessionsSection()
    alerts: AlertsSection = AlertsSection()
    results: ResultsSection = ResultsSection()
    prices: PricesSection = PricesSection()
    racks: Racks = Field(default_factory=dict)
    rack_patterns: RackPatterns = Field(default_factory=lambda: list(CLIENT_ID_RACKS))
    teams: Teams = Field(default_factory=list)
    replication: ReplicationSection = ReplicationSection()
    plan: PlanSection = PlanSection()
    feedback: FeedbackSection = FeedbackSection()
    privacy: PrivacySection = PrivacySection()
    health: HealthSection = HealthSection()
    monitoring: MonitoringSection = MonitoringSection()
    quality: QualitySection = QualitySection()
    upkeep: UpkeepSection = UpkeepSection()
    serve: ServeSection = ServeSection()
    spark: SparkSection = SparkSection()

    @model_validator(mode="before")
    @classmethod
    def _in_scope(cls, values: Any) -> Any:
        secrets = values.get("secrets") if isinstance(values, dict) else None
        scope = secrets.get("scope") if isinstance(secrets, dict) else None
        return in_scope(values, scope) if isinstance(scope, str) else values

    @property
    def excluded_principals(self) -> dict[str, str]:
        """Principals whose quotas are neither advised nor planned -> the key of conf that says so,
        or "own" for the login of this conf.
        """
        own = self.kafka.own_principal
        return (
            dict.fromkeys(
                (*DEFAULT_EXCLUDED, *self.plan.excluded_principals), "plan.excluded_principals"
            )
            | dict.fromkeys(self.ingest.shipper_principals, "ingest.shipper_principals")
            | ({own: "own"} if own else {})
        )

    @model_validator(mode="after")
    def _racks_of_addresses(self) -> "Conf":
        if self.racks and self.privacy.hides(ADDRESS):
            raise ValueError(
                "racks need addresses, which privacy.columns hides: empty racks, or leave "
                "client_address out of privacy.columns"
            )
        return self


def packaged() -> Path:
    """The file of conf that is read where none is given."""
    return Path(str(resources.files("quotaflow.conf") / "local.yaml"))


def load(file: Path | None = None, overrides: list[str] | None = None) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply key=value pairs.

    Raises ConfigError with every problem at once, each naming the key, the value and the bound, and
    whether the file has it or a pair made it.
    """
    source = file or packaged()
    values = read(source)
    of_file = deepcopy(values)
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        wrong = problems(error, Conf)
    in_file = _problems(of_file) if overrides else wrong
    by_source = {
        str(source): [problem for problem in wrong if problem in in_file],
        "--set": [problem for problem in wrong if problem not in in_file],
    }
    raise ConfigError(
        "; ".join(f"{by}: {'; '.join(texts)}" for by, texts in by_source.items() if texts)
    )


def _problems(values: dict[str, Any]) -> list[str]:
    try:
        Conf.model_validate(values)
    except ValidationError as error:
        return problems(error, Conf)
    return []
