"""conf/*.yaml as checked models: unknown keys refused, every problem in one error, no literal secret.

Defaults live here and nowhere else; YAML and --set only override them.
"""

import difflib
import os
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.secrets import literal_secret_problem

Positive = Annotated[int, Field(gt=0)]
PositiveRate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def home() -> Path:
    """Where quotaflow keeps what no conf places elsewhere: $QUOTAFLOW_HOME, else ~/.quotaflow."""
    return Path(os.environ.get("QUOTAFLOW_HOME", "~/.quotaflow")).expanduser()


class Section(BaseModel):
    """A part of conf: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Kafka(Section):
    """How to reach the cluster: any Kafka client property, secrets as env:NAME or secret:scope/key.

    `cluster_id` pins the cluster the conf means; a broker of another cluster is refused.
    """

    properties: dict[str, str] = Field(default_factory=dict)
    cluster_id: str | None = None

    @field_validator("properties", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}

    @model_validator(mode="after")
    def _no_literal_secrets(self) -> "Kafka":
        problems = [p for item in self.properties.items() if (p := literal_secret_problem(*item))]
        if problems:
            raise ValueError("; ".join(problems))
        return self


class Warehouse(Section):
    """Where the Delta tables are: a folder, or a Unity Catalog schema; and their checkpoints."""

    path: str | None = None
    catalog_schema: str | None = Field(default=None, pattern=r"^\w+\.\w+$")
    checkpoints: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "Warehouse":
        if self.path and self.catalog_schema:
            raise ValueError("path and catalog_schema exclude each other: name one")
        if self.catalog_schema and not self.checkpoints:
            raise ValueError("catalog_schema needs checkpoints, a folder such as /Volumes/...")
        return self

    @property
    def folder(self) -> Path:
        """The folder of the tables when they are not in a catalog."""
        return Path(self.path).expanduser() if self.path else home() / "warehouse"

    @property
    def checkpoint_folder(self) -> Path:
        """The folder that holds one checkpoint per query."""
        return Path(self.checkpoints).expanduser() if self.checkpoints else (
            self.folder / "_checkpoints"
        )


class Ingest(Section):
    """What is read, and how much at once.

    `shippers` names the client ids whose own requests are left out (the recursion trap).
    """

    request_log_topic: str | None = "broker_request_logs"
    receiver_topic: str | None = "client_telemetry"
    max_offsets_per_trigger: Positive = 200_000
    max_line_bytes: Positive = 4 * 1024 * 1024
    max_body_bytes: Positive = 256 * 1024
    max_clock_skew_s: Positive = 60
    shippers: list[str] = Field(default_factory=lambda: ["quotaflow-shipper"])


class Payloads(Section):
    """Bounds on what one telemetry payload may cost."""

    max_decoded_bytes: Positive = 16 * 1024 * 1024
    max_ratio: Positive = 1_000
    max_points: Positive = 100_000
    max_attributes: Positive = 128
    max_string_chars: Positive = 4_096


class ProducerIds(Section):
    """Producer-id quotas (KIP-936), which stock Kafka cannot hold, and the rule's windows.

    `quotas` maps a user (alice, not User:alice) to producer ids per second and broker.
    `filter_window_ms` is how long an id is remembered: between half and one and a half of it.
    """

    default_quota_per_s: PositiveRate = 1.0
    quotas: dict[str, PositiveRate] = Field(default_factory=dict)
    num_windows: Positive = 11
    window_ms: Annotated[int, Field(gt=0, multiple_of=1_000)] = 1_000
    filter_window_ms: Annotated[int, Field(gt=0, multiple_of=1_000)] = 60_000
    filter_items: Positive = 10_000
    filter_false_positive_rate: Annotated[float, Field(gt=0, lt=1)] = 0.001


class Results(Section):
    """How long facts may be late and still correct a result, and when a plan may trust one."""

    max_lateness_s: Positive = 3_600
    settle_s: Positive = 30
    max_bytes_per_trigger: Positive = 512 * 1024 * 1024


class Spark(Section):
    """Passed to the local session; on Databricks the cluster's own settings hold."""

    driver_memory: str = Field(default="2g", pattern=r"^\d+[mg]$")
    master: str = "local[*]"
    conf: dict[str, str] = Field(default_factory=dict)


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: Kafka = Kafka()
    warehouse: Warehouse = Warehouse()
    ingest: Ingest = Ingest()
    payloads: Payloads = Payloads()
    producer_ids: ProducerIds = ProducerIds()
    results: Results = Results()
    spark: Spark = Spark()


def load(file: Path | None = None, overrides: list[str] | None = None) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply key=value pairs.

    Raises ConfigError with every problem at once, each naming the key, the value and the bound.
    """
    source = file or Path(str(resources.files("quotaflow.conf") / "local.yaml"))
    values = _read(source)
    for override in overrides or []:
        _override(values, override)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        lines = [_problem(item) for item in error.errors(include_url=False)]
        raise ConfigError(f"{source}: " + "; ".join(lines)) from None


def _read(file: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read conf {file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict | None):
        raise ConfigError(f"{file} must hold sections such as kafka: and warehouse:")
    return values or {}


def _override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    section, dot, name = key.partition(".")
    if not equals or not dot or not name:
        raise ConfigError(f"--set {override}: write section.key=value, e.g. warehouse.path=/data")
    holder = values.setdefault(section, {}) or {}
    nested, _, leaf = name.partition(".")
    if leaf and isinstance(holder, dict) and (section, nested) in _MAPS:
        holder.setdefault(nested, {})[leaf] = yaml.safe_load(text)
    else:
        holder[name] = yaml.safe_load(text)
    values[section] = holder


_MAPS = {("kafka", "properties"), ("producer_ids", "quotas"), ("spark", "conf")}


def _problem(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {where}{_nearest(item['loc'])}"
    return f"{where} = {item['input']!r}: {item['msg']}" if _printable(item) else (
        f"{where}: {item['msg']}"
    )


def _printable(item: Any) -> bool:
    # Sections and Kafka properties may hold what must not be echoed.
    return isinstance(item["input"], str | int | float | bool) and item["loc"][0] != "kafka"


def _nearest(location: tuple[str | int, ...]) -> str:
    model: Any = Conf
    for part in location[:-1]:
        model = model.model_fields[part].annotation
    near = difflib.get_close_matches(str(location[-1]), list(model.model_fields), n=1, cutoff=0.5)
    known = ", ".join(model.model_fields)
    return f" (did you mean {near[0]}?)" if near else f" (known: {known})"
