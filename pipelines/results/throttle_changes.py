"""`throttle_changes`: who set, altered or removed a replication throttle, from requests (KIP-73).

A request that a broker passes on to the controller is in the log twice; `requests` holds it once.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.results.result import Known, Result
from quotaflow.schemas import tables
from quotaflow.udfs.rules.throttled_replicas import DELETE, OPERATIONS, SET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC, BROKER = "topic", "broker"
LISTS = {
    "leader": "leader.replication.throttled.replicas",
    "follower": "follower.replication.throttled.replicas",
}
RATES = {
    "leader": "leader.replication.throttled.rate",
    "follower": "follower.replication.throttled.rate",
}
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
APIS = ("INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS", "CREATE_TOPICS", "DELETE_TOPICS")

_TABLE = tables.THROTTLE_CHANGES
_BUCKET_S = 60
_MOST_CHARS = 300
_KEYS = {TOPIC: [*LISTS.values()], BROKER: [*RATES.values(), LOG_DIRS_RATE]}
_NUMBERS = {2: TOPIC, 4: BROKER}
_CONFIGS = "configs: ARRAY<STRUCT<name: STRING, configOperation: INT, value: STRING>>"
_ERROR = "errorCode: INT, errorMessage: STRING"
_BODY = f"""
    request STRUCT<
        resources: ARRAY<STRUCT<resourceType: INT, resourceName: STRING, {_CONFIGS}>>,
        topics: ARRAY<STRUCT<name: STRING, {_CONFIGS}>>, validateOnly: BOOLEAN>,
    response STRUCT<
        responses: ARRAY<STRUCT<resourceType: INT, resourceName: STRING, name: STRING, {_ERROR}>>,
        topics: ARRAY<STRUCT<name: STRING, {_ERROR}>>>
"""


def _quoted(names: "list[str] | tuple[str, ...]") -> str:
    return ", ".join(f"'{name}'" for name in names)


_EVERY_KEY = _quoted([key for keys in _KEYS.values() for key in keys])
_TYPE = " ".join(f"when {number} then '{name}'" for number, name in _NUMBERS.items())
_KEYS_OF = " ".join(f"when {n} then array({_quoted(_KEYS[of])})" for n, of in _NUMBERS.items())
_RESOURCES = f"""filter(body.request.resources, r ->
    r.resourceType in ({", ".join(map(str, _NUMBERS))}))"""
_NAMED = f"filter(configs, c -> c.name in ({_EVERY_KEY}))"
_ANSWER = """get(filter(body.response.responses, a ->
    a.resourceType = r.resourceType and a.resourceName = r.resourceName), 0)"""
_ANSWER_OF_TOPIC = "get(filter(body.response.topics, a -> a.name = t.name), 0)"


def _change(entity: str, key: str, operation: str, value: str, answer: str) -> str:
    return f"""struct({entity}, {key} as config_key, {operation} as operation,
        {value} as config_value, {answer}.errorCode as error_code,
        substring({answer}.errorMessage, 1, {_MOST_CHARS}) as error_message)"""


def _all_changes() -> str:
    """SQL for what each API asks to be done to configs of throttles, with its answer."""
    resource = f"case r.resourceType {_TYPE} end as entity_type, r.resourceName as entity_name"
    topic = f"'{TOPIC}' as entity_type, t.name as entity_name"
    operation = f"get(array({_quoted(OPERATIONS)}), c.configOperation)"
    set_or_not = f"if(c.value is null, '{DELETE}', '{SET}')"
    kept = "get(filter(r.configs, c -> c.name = k), 0).value"
    nothing = "cast(null as string)"
    altered = _change(resource, "c.name", operation, "c.value", _ANSWER)
    replaced = _change(resource, "c.name", set_or_not, "c.value", _ANSWER)
    made = _change(topic, "c.name", set_or_not, "c.value", _ANSWER_OF_TOPIC)
    gone = _change(topic, "k", f"'{DELETE}'", nothing, "t")
    named_of_resource = _NAMED.replace("configs", "r.configs", 1)
    named_of_topic = _NAMED.replace("configs", "t.configs", 1)
    return f"""case api
    when 'INCREMENTAL_ALTER_CONFIGS' then flatten(transform({_RESOURCES}, r ->
        transform({named_of_resource}, c -> {altered})))
    when 'ALTER_CONFIGS' then flatten(transform({_RESOURCES}, r -> transform(
        transform(case r.resourceType {_KEYS_OF} end, k -> struct(k as name, {kept} as value)),
        c -> {replaced})))
    when 'CREATE_TOPICS' then flatten(transform(body.request.topics, t ->
        transform({named_of_topic}, c -> {made})))
    when 'DELETE_TOPICS' then flatten(transform(
        filter(body.response.responses, t -> t.errorCode = 0 and t.name is not null),
        t -> transform(array({_quoted(_KEYS[TOPIC])}), k -> {gone})))
    end"""


def result() -> Result:
    """The result as the driver takes it."""
    return Result(
        table=_TABLE,
        facts=tables.REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        relevant=altering,
        compute=changes,
    )


def altering(requests: "DataFrame") -> "DataFrame":
    """Requests that alter configs, or make or delete what has them."""
    return requests.where(F.col("api").isin(*APIS)).select(
        *("cluster_id", "event_time", "record_time", "broker_id", "api"),
        *("principal", "client_id", "client_address", "body"),
        *("source_topic", "source_partition", "source_offset"),
    )


def changes(known: Known) -> "DataFrame":
    """Relevant requests to rows of the table."""
    lines = known.facts.withColumn("body", F.from_json("body", _BODY)).where(
        "NOT coalesce(body.request.validateOnly, false)"
    )
    is_lost = F.col("body.request").isNull() & F.col("body.response").isNull()
    return (
        lines.withColumns({"is_lost": is_lost, "event_date": F.to_date("event_time")})
        .select("*", F.explode_outer(F.expr(_all_changes())).alias("change"))
        .where("is_lost OR change IS NOT NULL")
        .select("*", "change.*")
        .select(_TABLE.column_names)
    )
