"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults live here and nowhere else; YAML and --set only override them.
"""

import difflib
import os
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from quotaflow.pipelines.alert_rules import Alerts
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.fetch_sections import FetchSessions
from quotaflow.pipelines.health_section import Health
from quotaflow.pipelines.overrides import override, read
from quotaflow.pipelines.plan_section import Plan
from quotaflow.pipelines.prices import Prices
from quotaflow.pipelines.privacy_section import Privacy
from quotaflow.pipelines.quality_section import Quality
from quotaflow.pipelines.quota_sections import ProducerIds, Quotas
from quotaflow.pipelines.racks import Racks
from quotaflow.pipelines.replication_section import Replication
from quotaflow.pipelines.sampling import Sampling
from quotaflow.pipelines.secrets import SHOWN_SECRET, literal_secret_problem, principal
from quotaflow.pipelines.section import Positive, Principal, Section
from quotaflow.pipelines.upkeep_section import Upkeep
from quotaflow.udfs.rules.pseudonym import ADDRESS

_UNPRINTED = {("kafka",), ("privacy",), ("spark", "conf"), ("alerts", "webhook")}


def home() -> Path:
    """Where quotaflow keeps what no conf places elsewhere: $QUOTAFLOW_HOME, else ~/.quotaflow."""
    return Path(os.environ.get("QUOTAFLOW_HOME") or "~/.quotaflow").expanduser()


class Kafka(Section):
    """How to reach the cluster: any Kafka client property, secrets as env:NAME or secret:scope/key.

    `cluster_id` pins the cluster the conf means; a broker of another cluster is refused. Whom
    brokers take this login for is told by its properties, or, with mTLS, OAuth or Kerberos, by
    `principal`. Databricks has Kafka's client under names that begin with `kafkashaded.`: its
    login modules are found with that as `login_module_prefix`.
    """

    properties: dict[str, str] = Field(default_factory=dict)
    cluster_id: str | None = None
    principal: Principal | None = None
    login_module_prefix: Literal["", "kafkashaded."] = ""

    @field_validator("properties", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        empty = [str(key) for key, given in value.items() if given is None]
        if empty:
            raise ValueError(f"{', '.join(empty)} has no value: write one, or leave the key out")
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}

    @model_validator(mode="after")
    def _no_literal_secrets(self) -> "Kafka":
        problems = [p for item in self.properties.items() if (p := literal_secret_problem(*item))]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def own_principal(self) -> str | None:
        """Whom brokers take this login for, as they print it; None where nothing tells."""
        return self.principal or principal(self.properties)


class Warehouse(Section):
    """Where the Delta tables are: a folder, or a Unity Catalog schema; and their checkpoints.

    Those of a catalog are in the volume `checkpoints` of its schema where nothing else is named.
    """

    path: str | None = None
    catalog_schema: str | None = Field(default=None, pattern=r"^\w+\.\w+$")
    checkpoints: str | None = None

    @field_validator("path")
    @classmethod
    def _a_folder(cls, path: str | None) -> str | None:
        if path and "://" in path:
            raise ValueError(
                "must be a folder of this machine: tables in an object store are reached through "
                "catalog_schema"
            )
        return path

    @model_validator(mode="after")
    def _one_place(self) -> "Warehouse":
        if self.path and self.catalog_schema:
            raise ValueError("path and catalog_schema exclude each other: name one")
        return self

    @property
    def folder(self) -> Path:
        """The folder of the tables when they are not in a catalog."""
        return Path(self.path).expanduser() if self.path else home() / "warehouse"

    @property
    def checkpoint_folder(self) -> Path:
        """The folder that holds one checkpoint per query; in a catalog the schema's own volume."""
        if self.checkpoints:
            return Path(self.checkpoints).expanduser()
        if self.catalog_schema:
            return Path("/Volumes", *self.catalog_schema.split("."), "checkpoints")
        return self.folder / "_checkpoints"


class Ingest(Section):
    """What is read, and how much at once; a topic that is null is a way in switched off.

    `shippers` names the client ids whose own requests are left out (the recursion trap).
    `sampling` says of which APIs only a part of the lines is kept.
    """

    request_log_topic: str | None = "broker_request_logs"
    receiver_topic: str | None = "client_telemetry"
    otlp_topic: str | None = None
    max_offsets_per_trigger: Positive = 200_000
    max_line_bytes: Positive = 4 * 1024 * 1024
    max_body_bytes: Positive = 256 * 1024
    max_clock_skew_s: Positive = 60
    shippers: list[str] = Field(default_factory=lambda: ["quotaflow-shipper"])
    sampling: Sampling = Field(default_factory=dict)


class Payloads(Section):
    """Bounds on what one telemetry payload may cost."""

    max_decoded_bytes: Positive = 16 * 1024 * 1024
    max_ratio: Positive = 1_000
    max_points: Positive = 100_000
    max_attributes: Positive = 128
    max_string_chars: Positive = 4_096


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

    @field_validator("conf")
    @classmethod
    def _no_secrets(cls, conf: dict[str, str]) -> dict[str, str]:
        shown = sorted(key for key in conf if SHOWN_SECRET.search(key))
        if shown:
            raise ValueError(
                f"{shown[0]} would stand in the process list: put it into spark-defaults.conf"
            )
        return conf


class Conf(Section):
    """Everything a job needs to know, with the defaults of each section."""

    kafka: Kafka = Kafka()
    warehouse: Warehouse = Warehouse()
    ingest: Ingest = Ingest()
    payloads: Payloads = Payloads()
    producer_ids: ProducerIds = ProducerIds()
    quotas: Quotas = Quotas()
    fetch_sessions: FetchSessions = FetchSessions()
    alerts: Alerts = Alerts()
    results: Results = Results()
    prices: Prices = Prices()
    racks: Racks = Field(default_factory=dict)
    replication: Replication = Replication()
    plan: Plan = Plan()
    privacy: Privacy = Privacy()
    health: Health = Health()
    quality: Quality = Quality()
    upkeep: Upkeep = Upkeep()
    spark: Spark = Spark()

    @model_validator(mode="after")
    def _racks_of_addresses(self) -> "Conf":
        if self.racks and self.privacy.hides(ADDRESS):
            raise ValueError(
                "racks are told by addresses, which privacy.columns hides: empty racks, or leave "
                "client_address out of privacy.columns"
            )
        return self


def load(file: Path | None = None, overrides: list[str] | None = None) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply key=value pairs.

    Raises ConfigError with every problem at once, each naming the key, the value and the bound.
    """
    source = file or Path(str(resources.files("quotaflow.conf") / "local.yaml"))
    values = read(source)
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        lines = [_problem(item) for item in error.errors(include_url=False)]
        raise ConfigError(f"{source}: " + "; ".join(lines)) from None


def _problem(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {where}{_nearest(item['loc'])}"
    said = str(item["msg"].removeprefix("Value error, "))
    if not where:
        return said
    return f"{where} = {item['input']!r}: {said}" if _printable(item) else f"{where}: {said}"


def _printable(item: Any) -> bool:
    # These may hold, in the wrong place, what must not be echoed.
    is_plain = isinstance(item["input"], str | int | float | bool)
    return is_plain and item["loc"][:1] not in _UNPRINTED and item["loc"][:2] not in _UNPRINTED


def _model(annotation: Any) -> Any:
    """The model in a list of them, or in one that may be none."""
    return next((of for of in get_args(annotation) if hasattr(of, "model_fields")), annotation)


def _nearest(location: tuple[str | int, ...]) -> str:
    model: Any = Conf
    for part in location[:-1]:
        # A number is an item's place in a list of the models that follow.
        model = model if isinstance(part, int) else _model(model.model_fields[part].annotation)
    near = difflib.get_close_matches(str(location[-1]), list(model.model_fields), n=1, cutoff=0.5)
    known = ", ".join(model.model_fields)
    return f" (did you mean {near[0]}?)" if near else f" (known: {known})"
