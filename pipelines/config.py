"""conf/*.yaml as checked models: unknown keys refused, problems in one error, no literal secret.

Defaults live here and nowhere else; YAML and --set only override them.
"""

import os
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from quotaflow.pipelines.alert_rules import Alerts
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.fetch_sections import FetchSessions
from quotaflow.pipelines.health_section import Health
from quotaflow.pipelines.kafka_properties import PROTOCOLS
from quotaflow.pipelines.kafka_properties import problems as problems_of_kafka
from quotaflow.pipelines.overrides import override, read
from quotaflow.pipelines.plan_section import Plan
from quotaflow.pipelines.prices import Prices
from quotaflow.pipelines.privacy_section import Privacy
from quotaflow.pipelines.problems import problems
from quotaflow.pipelines.quality_section import Quality
from quotaflow.pipelines.quota_sections import ProducerIds, Quotas
from quotaflow.pipelines.racks import Racks
from quotaflow.pipelines.replication_section import Replication
from quotaflow.pipelines.sampling import Sampling
from quotaflow.pipelines.secrets import SHOWN_SECRET, in_scope, literal_secret_problem, principal
from quotaflow.pipelines.section import Positive, Principal, Section, Topic, like
from quotaflow.pipelines.upkeep_section import Upkeep
from quotaflow.udfs.rules.pseudonym import ADDRESS


def home() -> Path:
    """Where quotaflow keeps what no conf places elsewhere: $QUOTAFLOW_HOME, else ~/.quotaflow."""
    return expanded(os.environ.get("QUOTAFLOW_HOME") or "~/.quotaflow", "QUOTAFLOW_HOME")


def expanded(path: str | Path, instead: str = "an absolute path") -> Path:
    """The path with the user's home folder in place of `~`.

    Raises ConfigError where the user has none, as with a container's arbitrary uid: it says to set
    HOME, or what to set instead.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path} is in a home folder, and this user has none: set HOME, or {instead}"
        ) from None


class Kafka(Section):
    """How to reach the cluster: any Kafka client property, secrets as env:NAME or secret:scope/key.

    `cluster_id` pins the cluster the conf means; a broker of another cluster is refused. A login
    is a username and password (PLAIN, SCRAM), or a certificate (mTLS). Whom brokers take it for is
    told by its properties, or, with mTLS, by `principal`. Databricks has Kafka's client under names
    that begin with `kafkashaded.`: its login modules are found with that as `login_module_prefix`.
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

    @field_validator("properties")
    @classmethod
    def _protocol_by_its_name(cls, properties: dict[str, str]) -> dict[str, str]:
        protocol = properties.get("security.protocol", "").upper()
        # Kafka's own client takes small letters too, others do not.
        return properties | ({"security.protocol": protocol} if protocol in PROTOCOLS else {})

    @model_validator(mode="after")
    def _no_wrong_values(self) -> "Kafka":
        literal = [p for item in self.properties.items() if (p := literal_secret_problem(*item))]
        wrong = [*literal, *problems_of_kafka(self.properties)]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def own_principal(self) -> str | None:
        """Whom brokers take this login for, as they print it; None where nothing tells."""
        return self.principal or principal(self.properties)


class Secrets(Section):
    """Where secrets are on Databricks: `scope` is that of references without one (secret:key)."""

    scope: (
        Annotated[str, like(r"[\w.@-]{1,128}", "write up to 128 letters, digits, . _ @ and -")]
        | None
    ) = None


class Warehouse(Section):
    """Where the Delta tables are: a folder, or a Unity Catalog schema; and their checkpoints.

    Those of a catalog are in the volume `checkpoints` of its schema where nothing else is named.
    """

    path: str | None = None
    catalog_schema: (
        Annotated[str, like(r"\w+\.\w+", "write catalog.schema, such as main.quotaflow")] | None
    ) = None
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
        return expanded(self.path) if self.path else home() / "warehouse"

    @property
    def checkpoint_folder(self) -> Path:
        """The folder that holds one checkpoint per query; in a catalog the schema's own volume."""
        if self.checkpoints:
            return expanded(self.checkpoints)
        if self.catalog_schema:
            return Path("/Volumes", *self.catalog_schema.split("."), "checkpoints")
        return self.folder / "_checkpoints"


class Ingest(Section):
    """What is read, and how much at once; a topic that is null is a way in switched off.

    `shippers` names the client ids whose own requests are left out (the recursion trap);
    `shipper_principals`, as Kafka prints them, the logins that fill the topics: no quota of theirs
    is advised or planned.
    `sampling` says of which APIs only a part of the lines is kept.
    """

    request_log_topic: Topic | None = "broker_request_logs"
    receiver_topic: Topic | None = "client_telemetry"
    otlp_topic: Topic | None = None
    max_offsets_per_trigger: Positive = 200_000
    max_line_bytes: Positive = 4 * 1024 * 1024
    max_body_bytes: Positive = 256 * 1024
    max_clock_skew_s: Positive = 60
    shippers: list[str] = Field(default_factory=lambda: ["quotaflow-shipper"])
    shipper_principals: list[Principal] = Field(
        default_factory=lambda: ["User:receiver", "User:shipper"]
    )
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

    driver_memory: Annotated[str, like(r"\d+[mg]", "write 2g or 2048m")] = "2g"
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
    secrets: Secrets = Secrets()
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
            dict.fromkeys(self.ingest.shipper_principals, "ingest.shipper_principals")
            | dict.fromkeys(self.plan.excluded_principals, "plan.excluded_principals")
            | ({own: "own"} if own else {})
        )

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

    Raises ConfigError with every problem at once, each naming the key, the value and the bound, and
    whether the file has it or a pair made it.
    """
    source = file or Path(str(resources.files("quotaflow.conf") / "local.yaml"))
    values = read(source)
    of_file = deepcopy(values)
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        wrong = problems(error, Conf)
    in_file = _problems(of_file) if overrides else wrong
    told = {
        str(source): [problem for problem in wrong if problem in in_file],
        "--set": [problem for problem in wrong if problem not in in_file],
    }
    raise ConfigError("; ".join(f"{by}: {'; '.join(of)}" for by, of in told.items() if of))


def _problems(values: dict[str, Any]) -> list[str]:
    try:
        Conf.model_validate(values)
    except ValidationError as error:
        return problems(error, Conf)
    return []
