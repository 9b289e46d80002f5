"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults are in the sections alone. A YAML file and --set only override them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
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
NUMBER_MAPS = {
    ("ingest", "sampling"),
    ("producer_ids", "quotas"),
    ("replication", "brokers"),
    ("upkeep", "retention_days"),
}
"""Maps of numbers, which have no = in them."""
_MAPS = {
    *TEXT_MAPS,
    *NUMBER_MAPS,
    ("alerts", "webhook"),
    ("monitoring", "otlp"),
}

_ENVIRONMENT = "environment"
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
    path = (section, name) if leaf is None else (section, name, leaf)
    is_text = leaf is not None and (section, name) in TEXT_MAPS
    put(values, path, text if is_text else _parsed_of(key, text), f"--set {key}")


def put(values: dict[str, Any], path: tuple[str, ...], value: Any, by: str) -> None:
    """Set the value below these keys. Raises ConfigError naming `by` if one of them is a value."""
    holder = values
    for part in path[:-1]:
        child = holder.get(part)
        holder[part] = {} if child is None else child
        holder = holder[part]
        if not isinstance(holder, dict):
            raise ConfigError(f"{by}: {part} in conf must hold keys and values")
    holder[path[-1]] = value


def _split(pair: str) -> tuple[str, tuple[str, str, str | None], str]:
    """The key, its section, name and entry of a map, and the text of the value."""
    quoted = _QUOTED_ENTRY.fullmatch(pair)
    if quoted and (quoted["section"], quoted["name"]) in _MAPS:
        section, name, text = quoted["section"], quoted["name"], quoted["text"]
        key = f"{section}.{name}.{quoted['leaf']}"
        return key, (section, name, str(_parsed_of(key, quoted["leaf"]))), text
    key, equals, text = pair.partition("=")
    section, _, rest = key.partition(".")
    if not equals or not rest:
        # The text may have a secret: only its key is printed.
        raise ConfigError(f"--set {key}: write section.key=value, e.g. warehouse.path=/data")
    name, _, leaf = rest.partition(".")
    if not leaf or (section, name) not in _MAPS:
        return key, (section, rest, None), text
    if "=" in text and (section, name) in NUMBER_MAPS:
        raise ConfigError(
            f"--set {key}: quote a name that has = in it, and the pair for the shell: "
            f"--set '{section}.{name}.\"CN=a,OU=b\"=5'"
        )
    return key, (section, name, leaf), text


def _parsed_of(key: str, text: str) -> Any:
    return parsed(text, f"--set {key}", f"--set '{key}=[\"User:CN=a,OU=b\"]'")


def parsed(text: str, by: str, example: str) -> Any:
    """The value that a text is in YAML.

    Raises ConfigError naming `by`, without the text, for what is no YAML; with `example`, for names
    that YAML would split.
    """
    try:
        plain_items = list(_plain_items(text))
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"{by}: the value is not YAML: quote it") from None
    if any("=" in item for item in plain_items):
        raise ConfigError(
            f"{by}: quote each name that has = in it, because YAML splits a list at each comma: "
            f"{example}"
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
    """Network (such as 10.1.0.0/16) to the rack of its clients that send none; the narrowest
    network counts (docs/racks.md). Not allowed if `privacy.columns` hides addresses.
    """
    rack_patterns: RackPatterns = Field(default_factory=lambda: list(CLIENT_ID_RACKS))
    """Regular expressions of RE2, at most 10 of 200 characters. The first group of the first that
    matches is the rack that a client id claims, where no request and no network of `racks` has one
    (docs/racks.md). Such a rack decides no change of the cluster. Not where `privacy.columns` hides
    client ids.
    """
    teams: Teams = Field(default_factory=list)
    """At most 100 teams, each with the keys of `teams[]`."""
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


def load(
    file: Path | None = None,
    overrides: list[str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply variables of the
    environment by their names, then key=value pairs.

    Reads no environment itself: `sources.given` does. Raises ConfigError with every problem at
    once, each naming the key, the value and the bound, and what made it: the file, a variable or a
    pair.
    """
    source = file or packaged()
    values = read(source)
    layers = [(str(source), deepcopy(values))]
    if variables:
        from quotaflow.pipelines.config import environment  # noqa: PLC0415  slow to import

        environment.apply(values, variables)
        layers.append((_ENVIRONMENT, deepcopy(values)))
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        wrong = problems(error, Conf)
    by_source: dict[str, list[str]] = {}
    for text, layer in _made_by(wrong, [*layers, ("--set", values)]):
        by = _names(wrong[text], variables or {}) if layer is _ENVIRONMENT else layer
        by_source.setdefault(by, []).append(text)
    raise ConfigError("; ".join(f"{by}: {'; '.join(texts)}" for by, texts in by_source.items()))


def _made_by(
    wrong: Iterable[str], layers: list[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, str]]:
    """Each problem with the first layer that has it; the last layer has all of them."""
    left = list(wrong)
    for name, values in layers:
        there = left if values is layers[-1][1] else _problems(values)
        yield from ((text, name) for text in left if text in there)
        left = [text for text in left if text not in there]


def _names(place: tuple[str, ...], variables: Mapping[str, str]) -> str:
    """The variables that give what is at or below this place."""
    from quotaflow.pipelines.config import environment  # noqa: PLC0415  slow to import

    paths = environment.paths(variables)
    near = [name for path, name in paths.items() if path[: len(place)] == place[: len(path)]]
    return ", ".join(near)


def _problems(values: dict[str, Any]) -> Iterable[str]:
    try:
        Conf.model_validate(values)
    except ValidationError as error:
        return problems(error, Conf)
    return ()
