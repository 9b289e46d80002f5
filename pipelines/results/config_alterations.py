"""`config_alterations`: alterations of dynamic configs and client quotas, from requests' bodies.

A request that a broker forwards to the controller is in the log twice, and in `requests` once.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result
from quotaflow.schemas.configs import BROKER, CLIENT_METRICS, HARMLESS, TOPIC, USER
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.udfs.rules.throttled_replicas import DELETE, OPERATIONS, SET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUOTAS = "ALTER_CLIENT_QUOTAS"
RESOURCES = ("INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS", "CREATE_TOPICS", "DELETE_TOPICS")
"""Requests that alter configs of resources, which are what ConfigResource.Type lists."""

_BUCKET_S = 60
_MOST_CHARS, _MOST_MESSAGE_CHARS = 32_767, 300
"""The protocol has no longer string; a line that does may hold one."""
_READ = (
    *("cluster_id", "event_time", "broker_id", "api", "principal", "client_id"),
    *("client_software_name", "client_address", "body"),
    *("source_topic", "source_partition", "source_offset"),
)
_TYPES = {2: TOPIC, 4: BROKER, 8: "broker-logger", 16: CLIENT_METRICS, 32: "group"}
_HIDDEN = "[hidden]"
_CONFIGS = "configs: ARRAY<STRUCT<name: STRING, configOperation: INT, value: STRING>>"
_ERROR = "errorCode: INT, errorMessage: STRING"
_ENTITY = "entity: ARRAY<STRUCT<entityType: STRING, entityName: STRING>>"
_BODY = f"""
    request STRUCT<
        resources: ARRAY<STRUCT<resourceType: INT, resourceName: STRING, {_CONFIGS}>>,
        topics: ARRAY<STRUCT<name: STRING, {_CONFIGS}>>,
        entries: ARRAY<STRUCT<{_ENTITY},
            ops: ARRAY<STRUCT<key: STRING, value: DOUBLE, remove: BOOLEAN>>>>,
        validateOnly: BOOLEAN>,
    response STRUCT<
        responses: ARRAY<STRUCT<resourceType: INT, resourceName: STRING, name: STRING, {_ERROR}>>,
        topics: ARRAY<STRUCT<name: STRING, {_ERROR}>>,
        entries: ARRAY<STRUCT<{_ENTITY}, {_ERROR}>>>
"""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_IS_HARMLESS = f"{{}} in ({_quoted(sorted(HARMLESS))})"
_TYPE = " ".join(f"when {number} then '{name}'" for number, name in _TYPES.items())
_NOTHING = "cast(null as string)"


def _bounded(text: str) -> str:
    return f"left({text}, {_MOST_CHARS})"


def _of_configs(entity: str, answer: str, operation: str, *, all_deleted: bool = False) -> str:
    """Structs for the configs of `of`: a resource, or a topic with configs."""
    value = f"""if({_IS_HARMLESS.format("c.name")} and c.value <> '{_HIDDEN}' and
        {operation} <> '{DELETE}', {_bounded("c.value")}, null)"""
    # An answer is for all configs of a resource: it may tell the value of any.
    is_shown = f"forall(of.configs, k -> {_IS_HARMLESS.format('k.name')})"
    answered = _answered(answer, is_shown)
    of_each = _alteration(entity, _bounded("c.name"), operation, value, answered)
    each = f"transform(of.configs, c -> {of_each})"
    if not all_deleted:
        return each
    all_ = _alteration(entity, _NOTHING, f"'{DELETE}'", _NOTHING, answered)
    return f"concat(array({all_}), {each})"


def _alteration(entity: str, key: str, operation: str, value: str, answered: str) -> str:
    return f"""struct({entity}, {key} as config_key, {operation} as operation,
        {value} as config_value, {answered})"""


def _entity(type_: str, name: str, client_id: str = _NOTHING) -> str:
    return f"""{type_} as entity_type, {_bounded(name)} as entity_name,
        {client_id} as entity_client_id"""


def _answered(answer: str, is_shown: str = "true") -> str:
    message = f"left({answer}.errorMessage, {_MOST_MESSAGE_CHARS})"
    return f"""{answer}.errorCode as error_code,
        if({is_shown}, {message}, null) as error_message"""


def _of_resources() -> dict[str, str]:
    """SQL for what each API asks to be done to configs of resources, with its answer."""
    resource = _entity(
        f"case of.resourceType {_TYPE} else cast(of.resourceType as string) end", "of.resourceName"
    )
    topic = _entity(f"'{TOPIC}'", "of.name")
    answer = """get(filter(body.response.responses, a ->
        a.resourceType = of.resourceType and a.resourceName = of.resourceName), 0)"""
    of_topic = "get(filter(body.response.topics, a -> a.name = of.name), 0)"
    operation = f"get(array({_quoted(OPERATIONS)}), c.configOperation)"
    set_or_not = f"if(c.value is null, '{DELETE}', '{SET}')"
    replaced = _of_configs(resource, answer, set_or_not, all_deleted=True)
    deleted = _alteration(topic, _NOTHING, f"'{DELETE}'", _NOTHING, _answered("of"))
    return {
        "INCREMENTAL_ALTER_CONFIGS": f"""flatten(transform(body.request.resources,
            of -> {_of_configs(resource, answer, operation)}))""",
        "ALTER_CONFIGS": f"flatten(transform(body.request.resources, of -> {replaced}))",
        "CREATE_TOPICS": f"""flatten(transform(body.request.topics,
            of -> {_of_configs(topic, of_topic, set_or_not)}))""",
        # Where a topic is deleted by its id, only the answer tells its name.
        "DELETE_TOPICS": f"""transform(
            filter(body.response.responses, of -> of.name is not null), of -> {deleted})""",
    }


def _of_quotas() -> str:
    """SQL for what ALTER_CLIENT_QUOTAS asks to be done; values are numbers, and so no secrets."""

    def name(kind: str) -> str:
        # A part without a name is the default; without such a part this is null.
        names = f"""transform(filter(of.entity, p -> p.entityType = '{kind}'),
            p -> coalesce(p.entityName, ''))"""
        return f"get({names}, 0)"

    user, client_id, ip = (name(kind) for kind in (USER, "client-id", "ip"))
    type_ = f"""case when {user} is not null then '{USER}' when {client_id} is not null
        then 'client-id' else coalesce({_bounded("get(of.entity, 0).entityType")}, '') end"""
    entity = _entity(
        type_,
        f"coalesce({user}, {client_id}, {ip}, '')",
        f"if({user} is not null, {_bounded(client_id)}, null)",
    )
    # The answer may name the parts of an entity in another order.
    answer = """get(filter(body.response.entries, a ->
        array_sort(a.entity) <=> array_sort(of.entity)), 0)"""
    is_whole = "c.value = floor(c.value) and abs(c.value) < 1e15"
    number = f"if({is_whole}, cast(cast(c.value as bigint) as string), cast(c.value as string))"
    operation = f"if(coalesce(c.remove, false), '{DELETE}', '{SET}')"
    value = f"if(coalesce(c.remove, false), null, {number})"
    each = _alteration(entity, _bounded("c.key"), operation, value, _answered(answer))
    return f"flatten(transform(body.request.entries, of -> transform(of.ops, c -> {each})))"


def _of_all() -> str:
    sql_by_api = _of_resources() | {QUOTAS: _of_quotas()}
    return " ".join(
        ("case api", *(f"when '{a}' then {sql}" for a, sql in sql_by_api.items()), "end")
    )


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=CONFIG_ALTERATIONS,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_altering,
        prepare=lambda requests: requests.select(*_READ),
        compute=lambda inputs: alterations(inputs.facts),
    )


def is_altering() -> Column:
    """Whether a request alters configs or quotas, or makes or deletes what has them."""
    return F.col("api").isin(*RESOURCES, QUOTAS)


def alterations(requests: "DataFrame") -> "DataFrame":
    """Such requests to rows of the table."""
    lines = requests.withColumn("body", F.from_json("body", _BODY)).where(
        "NOT coalesce(body.request.validateOnly, false)"
    )
    is_lost = F.col("body.request").isNull() & F.col("body.response").isNull()
    return (
        lines.withColumns({"is_lost": is_lost, "event_date": F.to_date("event_time")})
        .select("*", F.posexplode_outer(F.expr(_of_all())).alias("position", "alteration"))
        .where("is_lost OR alteration IS NOT NULL")
        .select("*", "alteration.*")
        .select(CONFIG_ALTERATIONS.column_names)
    )
