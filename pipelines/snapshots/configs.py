"""`configs`: what client-metrics resources, topics and brokers are configured to do."""

from collections.abc import Iterable, Iterator
from typing import Any

from kafka.admin import ConfigSourceType

from quotaflow.pipelines.kafka import cluster_state
from quotaflow.pipelines.kafka.cluster_state import Answer, ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Gap, Row
from quotaflow.pipelines.snapshots.topology import Brokers, Topology
from quotaflow.schemas.configs import CLIENT_METRICS

MOST_CHARS = 65_536
CUT = "value_cut"
TOPIC, BROKER = "topic", "broker"
_SOURCES = {source.value: source.name for source in ConfigSourceType}
_OF_TOPIC = ConfigSourceType.DYNAMIC_TOPIC_CONFIG.name


def of_client_metrics(state: ClusterState) -> Iterator[Row | Gap]:
    """Configs of client-metrics resources (KIP-714)."""
    kind = cluster_state.CLIENT_METRICS
    try:
        names = state.config_names(kind)
    except UnansweredError as error:
        yield Gap(str(error), {"entity_type": CLIENT_METRICS})
        return
    yield from _rows(CLIENT_METRICS, state.configs(kind, names))


def of_topics(state: ClusterState, topology: Topology) -> Iterator[Row | Gap]:
    """What is set on topics themselves: what they take from brokers stands with those."""
    yield from _gaps(TOPIC, topology.unanswered)
    answers = state.configs(cluster_state.TOPIC, topology.names)
    for each in _rows(TOPIC, answers):
        if isinstance(each, Gap) or each["config_source"] == _OF_TOPIC:
            yield each


def of_brokers(state: ClusterState, brokers: Brokers) -> Iterator[Row | Gap]:
    """Everything each broker has, whatever it comes from."""
    yield from _gaps(BROKER, brokers.unanswered)
    for broker_id in brokers.ids:
        answers = state.configs(cluster_state.BROKER, [str(broker_id)], broker_id)
        yield from _rows(BROKER, answers)


def _gaps(entity_type: str, unanswered: Iterable[Gap]) -> Iterator[Gap]:
    for gap in unanswered:
        # Of one topic or broker, or of all.
        named = zip(("entity_name",), map(str, gap.of.values()), strict=False)
        yield Gap(gap.reason, {"entity_type": entity_type, **dict(named)})


def _rows(entity_type: str, answers: Iterable[Answer]) -> Iterator[Row | Gap]:
    for answer in answers:
        of = {"entity_type": entity_type, "entity_name": answer.of}
        if answer.reason is not None:
            yield Gap(answer.reason, of)
        for config in answer.found:
            yield of | _told(config)
            if len(_value(config) or "") > MOST_CHARS:
                yield Gap(CUT, of | {"config_key": config.name})


def _told(config: Any) -> dict[str, Any]:
    value = _value(config)
    return {
        "config_key": config.name,
        "config_value": value if value is None else value[:MOST_CHARS],
        "config_source": _SOURCES.get(config.config_source, str(config.config_source)),
        "is_sensitive": config.is_sensitive,
    }


def _value(config: Any) -> str | None:
    return None if config.is_sensitive else config.value
