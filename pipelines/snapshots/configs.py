"""`configs`: configs of client-metrics resources, topics and brokers."""

from collections.abc import Iterable, Iterator
from typing import Any

from kafka.admin import ConfigSourceType

from quotaflow.pipelines.kafka import cluster_state
from quotaflow.pipelines.kafka.cluster_state import ClusterAnswer, ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import ObservedBrokers, Topology
from quotaflow.schemas.configs import CLIENT_METRICS

MAX_CHARS = 65_536
CUT = "value_cut"
TOPIC, BROKER = "topic", "broker"
_SOURCES = {source.value: source.name for source in ConfigSourceType}
_OF_TOPIC = ConfigSourceType.DYNAMIC_TOPIC_CONFIG.name


def of_client_metrics(state: ClusterState) -> Iterator[Row | UnansweredPart]:
    """Configs of client-metrics resources (KIP-714)."""
    kind = cluster_state.CLIENT_METRICS
    try:
        names = state.config_names(kind)
    except UnansweredError as error:
        yield UnansweredPart(str(error), {"entity_type": CLIENT_METRICS})
        return
    yield from _rows(CLIENT_METRICS, state.configs(kind, names))


def of_topics(state: ClusterState, topology: Topology) -> Iterator[Row | UnansweredPart]:
    """Configs that are set on topics themselves; others are in rows of brokers."""
    yield from _gaps(TOPIC, topology.unanswered)
    answers = state.configs(cluster_state.TOPIC, topology.names)
    for each in _rows(TOPIC, answers):
        if isinstance(each, UnansweredPart) or each["config_source"] == _OF_TOPIC:
            yield each


def of_brokers(state: ClusterState, brokers: ObservedBrokers) -> Iterator[Row | UnansweredPart]:
    """All configs of each broker, from any source."""
    yield from _gaps(BROKER, brokers.unanswered)
    for broker_id in brokers.ids:
        answers = state.configs(cluster_state.BROKER, [str(broker_id)], broker_id)
        yield from _rows(BROKER, answers)


def _gaps(entity_type: str, unanswered: Iterable[UnansweredPart]) -> Iterator[UnansweredPart]:
    for gap in unanswered:
        # One topic or broker, or all of them.
        named = zip(("entity_name",), map(str, gap.identity.values()), strict=False)
        yield UnansweredPart(gap.reason, {"entity_type": entity_type, **dict(named)})


def _rows(entity_type: str, answers: Iterable[ClusterAnswer]) -> Iterator[Row | UnansweredPart]:
    for answer in answers:
        entity = {"entity_type": entity_type, "entity_name": answer.subject}
        if answer.reason is not None:
            yield UnansweredPart(answer.reason, entity)
        for config in answer.content:
            yield entity | _config_row(config)
            if len(_value(config) or "") > MAX_CHARS:
                yield UnansweredPart(CUT, entity | {"config_key": config.name})


def _config_row(config: Any) -> dict[str, Any]:
    value = _value(config)
    return {
        "config_key": config.name,
        "config_value": value if value is None else value[:MAX_CHARS],
        "config_source": _SOURCES.get(config.config_source, str(config.config_source)),
        "is_sensitive": config.is_sensitive,
    }


def _value(config: Any) -> str | None:
    return None if config.is_sensitive else config.value
