"""The command throttle-advice: which replication throttle a move of replicas should have."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines.areas import move_advice
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, reassign_command
from quotaflow.pipelines.kafka import reassignment_file
from quotaflow.pipelines.terminal import output, texts
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse.readers import open_reader

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.move_advice import MoveAdvice
    from quotaflow.udfs.rules.move_throttle import MoveThrottle, SideDemand

COLUMNS = (
    "broker_id",
    "side",
    "size_bytes",
    "least_bytes_per_s",
    "other_bytes_per_s",
    "most_bytes_per_s",
    "reason",
    "capacity",
    "carried_at_most_bytes_per_s",
)

File = Annotated[
    Path,
    typer.Argument(metavar="REASSIGNMENT.json", help="A file for kafka-reassign-partitions."),
]


def throttle_advice(
    file: File,
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Advise a throttle for a move of replicas, and how long the move takes with it (KIP-73).

    Reads snapshots and traffic; needs no JVM. One row per side of each broker in the move: bytes to
    move, the rate it must exceed (what is written meanwhile), its other traffic, now or after
    the move, and the maximum rate. Capacity is conf's (replication.capacity_bytes_per_s). Without
    it no maximum and no duration are known: the most that a broker carried so far is shown instead.

    Example: quotaflow throttle-advice move.json
    """
    settings, targets = conf.of_tables(), reassignment_file.read(file)
    advice = move_advice.advise(open_reader(settings), targets, settings)
    rows = [_row(side, advice) for side in advice.throttle.sides]
    output.write(rows, COLUMNS, layout, by_importance=False)
    for line in _messages(advice, file, Connection.from_conf(settings.kafka)):
        output.note(line)


def _row(side: "SideDemand", advice: "MoveAdvice") -> dict[str, Any]:
    carried = advice.carried_at_most.get((side.broker_id, side.side))
    return {
        "broker_id": side.broker_id,
        "side": side.side,
        "size_bytes": side.size_bytes,
        "least_bytes_per_s": round(side.floor),
        "other_bytes_per_s": round(side.other),
        "most_bytes_per_s": None if side.advised.rate is None else round(side.advised.rate),
        "reason": side.advised.reason,
        "capacity": "unknown" if side in advice.throttle.unknown else "conf",
        "carried_at_most_bytes_per_s": None if carried is None else round(carried),
    }


def _messages(advice: "MoveAdvice", file: Path, connection: "Connection") -> Iterator[str]:
    throttle = advice.throttle
    if not throttle.sides:
        yield "Nothing is to be copied: every replica asked for is there."
        return
    if advice.cordoned:
        brokers = ", ".join(f"broker {broker}" for broker in advice.cordoned)
        yield (
            f"Do not start it: all log dirs of {brokers} are cordoned (KIP-1066), so no "
            "replica can come there. Choose other brokers, or empty cordoned.log.dirs."
        )
    yield from _rates(throttle, file, connection)
    yield from _too_large_answers(advice)
    for name, lists in (
        ("leader", throttle.leader_replicas),
        ("follower", throttle.follower_replicas),
    ):
        for topic, entries in sorted(lists.items()):
            yield f"{topic}: {name}.replication.throttled.replicas={entries}"


def _too_large_answers(advice: "MoveAdvice") -> Iterator[str]:
    """A warning where one answer of each broker is more than the throttle passes in its window."""
    sizing, throttle = advice.sizing, advice.throttle
    if sizing is None or throttle.short:
        return
    least, rate = sizing.least_leader_rate, throttle.max_rate
    if rate is None and least is not None:
        yield f"Replication stutters with rates up to {texts.rate(least)} (see throttle_sizing)."
        return
    if rate is not None and least is not None and rate > least:
        return
    above = "no rate" if least is None else f"rates above {texts.rate(least)}"
    yield (
        f"Replication will stutter: replica.fetch.response.max.bytes is "
        f"{sizing.response_max_bytes:,}, and answers of that size suit {above} only (KIP-73). "
        "Lower it first: see view throttle_sizing."
    )


def _rates(throttle: "MoveThrottle", file: Path, connection: "Connection") -> Iterator[str]:
    if throttle.short or (throttle.max_rate is not None and not throttle.fits):
        names = ", ".join(f"{side.side} {side.broker_id}" for side in throttle.short)
        yield (
            f"No rate fits: at {names or 'the busiest broker'} less is left than is written into "
            "what moves. Move fewer partitions at once, or when less is written."
        )
        return
    if throttle.max_rate is None:
        brokers = ", ".join(map(str, sorted({side.broker_id for side in throttle.unknown})))
        yield (
            f"It ends at any rate above {texts.rate(throttle.min_rate)}. Up to which rate clients "
            f"do not feel it is not known, because conf has no capacity of brokers {brokers}: set "
            "replication.capacity_bytes_per_s."
        )
        return
    seconds = throttle.seconds(throttle.max_rate)
    yield (
        f"It ends at any rate above {texts.rate(throttle.min_rate)}; clients do not feel it up to "
        f"{texts.rate(throttle.max_rate)}, at which it takes about "
        f"{texts.duration((seconds or 0.0) * 1e3)}."
    )
    yield reassign_command(str(file), throttle.max_rate, connection)
