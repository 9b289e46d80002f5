"""The plan that conf and the tables make, as text and as JSON objects."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines import secrets
from quotaflow.pipelines.commands import values
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.plan import Bounds, Connection, Desired, Plan, plan
from quotaflow.pipelines.reader import Reader, engine_errors
from quotaflow.pipelines.warehouse import Warehouse

_FIELDS = tuple(Desired.__dataclass_fields__)


def make(settings: Conf, now: datetime) -> Plan:
    """The plan as it is now."""
    return plan(desired(settings), now, bounds(settings), connection(settings))


def desired(settings: Conf) -> list[Desired]:
    """The rows of desired_configs as they are now."""
    sql = f"SELECT {', '.join(_FIELDS)} FROM desired_configs"
    with engine_errors(sql):
        rows = Reader(Warehouse(settings.warehouse)).query(sql).read_all().to_pylist()
    return [Desired(**row) for row in rows]


def bounds(settings: Conf) -> Bounds:
    """What conf keeps a plan from touching; the pipeline's own login too."""
    own = own_principal(settings)
    return Bounds(
        excluded_principals=frozenset(settings.plan.excluded_principals)
        | ({own} if own else set()),
        settle=timedelta(seconds=settings.results.settle_s),
        cluster_id=settings.kafka.cluster_id,
    )


def connection(settings: Conf) -> Connection:
    """How kafka-configs reaches the cluster of conf."""
    properties = settings.kafka.properties
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return Connection(properties.get("bootstrap.servers", "BROKER:9092"), protocol != "PLAINTEXT")


def own_principal(settings: Conf) -> str | None:
    """The principal this conf logs in as, where it can be told without the login itself."""
    try:
        resolved = secrets.resolve(settings.kafka.properties)
    except ConfigError:
        # A plan needs no login: a secret that is not at hand here is none of its business.
        resolved = dict(settings.kafka.properties)
    username = secrets.credentials(resolved.get("sasl.jaas.config", ""))[0]
    username = username or resolved.get("sasl.username", "")
    return f"User:{username}" if username and not username.startswith(secrets.REFERENCES) else None


def objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """Each change as one JSON object: the desired row, the value as written, command and note."""
    for change in plan.changes:
        row = {name: getattr(change.desired, name) for name in _FIELDS}
        row |= {"config_value": change.value, "since": _time(change.desired.since)}
        yield row | {"command": change.command, "note": change.note}


def text(plan: Plan) -> Iterator[str]:
    """The plan for people; what a client named is shown with its control characters escaped."""
    if not plan.changes:
        yield "no changes wait"
        return
    for change in plan.changes:
        row = change.desired
        yield f"{_entity(row)}: {row.config_key} = {change.value}"
        yield f"  why       {values.visible(row.reason)}"
        yield f"  since     {_time(row.since)}"
        yield f"  evidence  {row.evidence_table}: {values.visible(row.evidence_key)}"
        yield f"  command   {change.command}"
        if change.note:
            yield f"  note      {change.note}"
        yield ""
    waiting = len(plan.changes)
    changes = "1 change waits" if waiting == 1 else f"{waiting} changes wait"
    yield f"{changes}. Nothing was applied: run a command above yourself; applying comes later."


def not_planned(plan: Plan) -> Iterator[str]:
    """What was held back, and why."""
    for held in plan.held:
        yield f"not planned: {_entity(held.desired)}: {held.why}"


def _entity(row: Desired) -> str:
    return values.visible(f"{row.entity_type} {row.entity_name} in cluster {row.cluster_id}")


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
