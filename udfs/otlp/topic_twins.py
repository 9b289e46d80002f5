"""Points that Java clients send twice: under a topic with dots, and with '_' in place of each '.'.

Since Kafka 4.1 consumers name topics as they are (KIP-1109), and still send the older form beside
it. No cluster has both topics, because Kafka refuses a topic that collides with another so.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import BOOLEAN

_SAME_POINT = (
    *("client_instance_id", "client_id", "metric", "kind", "start_time", "event_time"),
    *("value", "value_int", "attributes"),
)

_Points = dict[tuple[object, ...], tuple[int, float | None]]
"""Points of one topic in a push by what differs between them: the row, and the value."""


def topic_twins(points: Mapping[str, pa.Array], push: pa.Array) -> pa.Array:
    """Whether each point is the twin of one with dots in its topic; null without a topic.

    `push` has the number of each point's push. A point is a twin if its push has the same point
    under the topic with dots, and if most of such points of the two topics have the same value. A
    value of 0 shows nothing if there are others: both topics may be idle.
    """
    topics = points["topic"]
    rows = _suspects(topics)
    twins = [None if topic is None else False for topic in topics.to_pylist()] if rows else None
    if twins is None:
        return pc.if_else(pc.is_null(topics), pa.scalar(None, BOOLEAN), pa.scalar(False))
    by_topic = _by_topic(points, push, rows)
    for (owner, topic), dotted in by_topic.items():
        twin = by_topic.get((owner, _mangled(topic)), {}) if "." in topic else {}
        same = dotted.keys() & twin.keys()
        if same and _are_equal([(dotted[key][1], twin[key][1]) for key in same]):
            for key in same:
                twins[twin[key][0]] = True
    return pa.array(twins, BOOLEAN)


def _mangled(topic: str) -> str:
    return topic.replace(".", "_")


def _suspects(topics: pa.Array) -> list[int]:
    """The rows of topics with dots, and of those that may be their twins."""
    names = pc.unique(topics).drop_null().to_pylist()
    dotted = {name for name in names if "." in name}
    both = dotted | {_mangled(name) for name in dotted}
    if len(both.intersection(names)) == len(dotted):
        return []
    is_one = pc.is_in(topics, pa.array(sorted(both), topics.type))
    return [int(row) for row in pc.indices_nonzero(is_one).to_pylist()]


def _by_topic(
    points: Mapping[str, pa.Array], push: pa.Array, rows: Sequence[int]
) -> dict[tuple[tuple[object, ...], str], _Points]:
    taken = pa.array(rows, pa.int64())
    table = pa.table({name: points[name].take(taken) for name in ("topic", *_SAME_POINT)})
    # Times as numbers: a hostile clock may be out of the range of Python's times.
    for name in ("start_time", "event_time"):
        number = table.column_names.index(name)
        table = table.set_column(number, name, table[name].cast(pa.int64()))
    pushes = push.take(taken).to_pylist()
    by_topic = defaultdict[tuple[tuple[object, ...], str], _Points](dict)
    for row, number, point in zip(rows, pushes, table.to_pylist(), strict=True):
        value = point["value"] if point["value_int"] is None else point["value_int"]
        owner = (number, point["client_instance_id"], point["client_id"])
        others = tuple(sorted(each for each in point["attributes"] or [] if each[0] != "topic"))
        names = ("metric", "kind", "start_time", "event_time")
        key = (*(point[name] for name in names), others)
        by_topic[owner, point["topic"]][key] = (row, value)
    return by_topic


def _are_equal(pairs: Sequence[tuple[float | None, float | None]]) -> bool:
    nonzero = [pair for pair in pairs if any(_shows(value) for value in pair)]
    compared = nonzero or list(pairs)
    equal = sum(one == other or not (_shows(one) or _shows(other)) for one, other in compared)
    return 2 * equal > len(compared)


def _shows(value: float | None) -> bool:
    return value is not None and value != 0 and not math.isnan(value)
