"""The first screen of a report: what is wrong now, what changed, what it costs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.areas.costs import ITEMS, costs_of
from quotaflow.pipelines.areas.finding import SOMETIME, Finding
from quotaflow.pipelines.areas.producer_ids import GIVEN_IDS
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.traffic import (
    BOTH,
    BY_STEP,
    CHANGES_SEEN,
    EARLIER,
    RACK_COSTS,
    SNAPSHOTS,
)
from quotaflow.pipelines.report import rack_traffic
from quotaflow.pipelines.report.incidents import MAX_CARDS, Card, repeated
from quotaflow.pipelines.report.plots import sparkline
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.reader import each as in_order
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.levels import IN_WORDS, SAMPLED_LOG
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

MAX_SHOWN = 5
"""The first screen shows this many alarms; the others are folded."""

_SAME = 0.005
_DAY_S, _MINUTE_S = 86_400, 60
_STEPS = 48
"""The line of a tile has this many steps."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A number, what it is compared with, and how it went over time."""

    name: str
    value: str
    note: str
    figure: str


@dataclass(frozen=True, slots=True)
class Block:
    """One question of the first screen: its answer in numbers and sentences, and one action."""

    title: str
    sentences: tuple[str, ...]
    action: str = ""
    tiles: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class ToDo:
    """An alarm, the section that raised it, and the first thing to do about it."""

    alarm: Finding
    section: ReportSection
    action: str


@dataclass(frozen=True, slots=True)
class _Measure:
    """A number that is compared with the period before, as a tile or in a sentence.

    `value` is SQL of it in a row of `table`, or of `rows`, which are made from it. `witness` is a
    table whose rows show that events of a time were read: without them no row in `table` is not the
    same as zero.
    """

    words: str
    table: str
    value: str
    witness: str
    show: Callable[[float | None], str]
    command: str
    is_tile: bool = False
    rows: str = ""

    @property
    def parts(self) -> dict[str, str]:
        """What BOTH and BY_STEP need of it."""
        return {"table": self.rows or self.table, "value": self.value}


_MEASURES = (
    _Measure(
        "Clients produced",
        "traffic",
        "CASE WHEN direction = 'produced' THEN bytes END",
        "traffic",
        texts.size,
        "show top_talkers",
        is_tile=True,
    ),
    _Measure(
        "Clients consumed",
        "traffic",
        "CASE WHEN direction = 'consumed' THEN bytes END",
        "traffic",
        texts.size,
        "show top_talkers",
        is_tile=True,
    ),
    _Measure(
        "Brokers throttled clients for",
        "quota_usage",
        "CASE WHEN throttled_requests > 0 THEN throttle_time_ms END",
        "traffic",
        texts.duration,
        "show throttled_clients",
        is_tile=True,
    ),
    _Measure(
        "New producer ids:",
        "producer_id_uses",
        "1",
        "traffic",
        texts.number,
        "show producer_id_advice",
        is_tile=True,
        rows=GIVEN_IDS,
    ),
    _Measure(
        "Configs and quotas written:",
        "config_alterations",
        "CASE WHEN error_code = 0 THEN 1 END",
        "traffic",
        texts.number,
        "show config_alterations",
    ),
    _Measure(
        "Alerts on client metrics that opened:",
        "metric_alert_events",
        "CASE WHEN state = 'opened' AND watched IS NULL THEN 1 END",
        "telemetry_pushes",
        texts.number,
        "show alerts",
    ),
    _Measure(
        "Alerts on rows that opened:",
        "metric_alert_events",
        "CASE WHEN state = 'opened' AND watched IS NOT NULL THEN 1 END",
        "metric_alert_events",
        texts.number,
        "show alerts",
    ),
)
_MEASURED_BY = {
    "traffic": "what clients produced and consumed, throttles, producer ids, and who wrote configs",
    "telemetry_pushes": "alerts on what clients measure",
}
"""What the measures of a witness say."""


def first_screen(
    sections: Sequence[ReportSection], blocks: Sequence[Block], cards: Sequence[Card]
) -> Mapping[str, object]:
    """What the first screen shows, by the names of its template."""
    in_cards = repeated(cards)
    return {
        "cards": cards,
        "to_dos": [each for each in to_dos(sections) if each.alarm.code not in in_cards],
        "blocks": blocks,
        "max_shown": MAX_SHOWN,
        "max_cards": MAX_CARDS,
    }


def to_dos(sections: Sequence[ReportSection]) -> tuple[ToDo, ...]:
    """Every alarm, the worst first, with its own action, else the first one of its section."""
    every = [
        ToDo(alarm, section, alarm.next_step or _first(section.advice))
        for section in sections
        for alarm in section.alarms
    ]
    return tuple(sorted(every, key=lambda to_do: to_do.alarm.severity or SOMETIME))


def _first(advice: str) -> str:
    """The first part of a section's advice; empty if it says that nothing is to do."""
    if not advice or advice.startswith(texts.NO_STEP.rstrip(".")):
        return ""
    return f"{advice.partition('; ')[0].rstrip('.')}."


def blocks(scope: Scope, sections: Sequence[ReportSection]) -> tuple[Block, ...]:
    """What changed against the period before, and what it costs."""
    return (_changes(scope), _costs(scope, sections))


def _length(scope: Scope) -> timedelta:
    return scope.until - scope.since


def _before(scope: Scope) -> str:
    """The period before, in words."""
    length_s = _length(scope).total_seconds()
    return (
        "the day before" if length_s == _DAY_S else f"the {texts.duration(length_s * 1e3)} before"
    )


def _changes(scope: Scope) -> Block:
    is_day = _length(scope) == timedelta(seconds=_DAY_S)
    title = f"What changed since {'yesterday' if is_day else texts.moment(scope.since) + ' UTC'}"
    start = _start(scope)
    witnesses = _witnesses(scope)
    earlier = in_order(scope.reader, lambda table: _has_earlier(scope, table, start), witnesses)
    seen = dict(zip(witnesses, earlier, strict=True))
    compared = _compared(scope, start, seen)
    snapshots, action = ("", "") if scope.has_log else _snapshots(scope)
    if not compared and not snapshots:
        return Block(title, ("No table has events of clients yet.",))
    every = (*_sentences(scope, compared), snapshots, *_gaps(seen))
    if not action and compared:
        action = _most_risen(compared)
    tiles = (_tile(scope, *each) for each in compared if each[0].is_tile)
    return Block(title, tuple(filter(None, every)), action, tuple(tiles))


def _tile(scope: Scope, measure: _Measure, row: Row, is_seen: bool) -> Tile:
    step_s = max(_MINUTE_S, int(_length(scope).total_seconds()) // _STEPS)
    steps = scope.rows(BY_STEP, **measure.parts, step=str(step_s))
    points = [(each["second"], each["value"]) for each in steps]
    first, last = scope.since.timestamp(), scope.until.timestamp()
    times = (first // step_s * step_s, (last // step_s + 1) * step_s)
    return Tile(
        measure.words.rstrip(":"),
        measure.show(row["now"]),
        _against(measure, row, _before(scope)) if is_seen else "",
        sparkline(points, step_s, measure.show, times),
    )


def _snapshots(scope: Scope) -> tuple[str, str]:
    """What snapshots alone say of changes, and what shows them; empty if there is none."""
    (taken,) = scope.rows_if_made(SNAPSHOTS) or ({"now": 0, "every": 0},)
    if not taken["now"]:
        return "", ""
    if taken["every"] == 1:
        sentence = "There is one snapshot: the next one shows what changed."
        return sentence, "Let `quotaflow snapshot` run on a schedule."
    snapshots = counted(taken["now"], "snapshot")
    (row,) = scope.rows_if_made(CHANGES_SEEN) or ({"changes": 0},)
    if not row["changes"]:
        return f"{snapshots} found no config or client quota changed.", ""
    changes = counted(row["changes"], "change")
    sentence = f"{snapshots} found {changes} of configs and client quotas."
    return sentence, "`quotaflow show config_value_changes` names them, with the values before."


def _gaps(seen: Mapping[str, bool]) -> Iterator[str]:
    """What the other measures say, and the level that it needs."""
    for witness, what in _MEASURED_BY.items():
        if witness not in seen:
            yield f"Not known: {what}. That needs {IN_WORDS[TABLES[witness].level]}."


def _start(scope: Scope) -> datetime:
    """The start of the period before."""
    try:
        return scope.since - _length(scope)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _witnesses(scope: Scope) -> list[str]:
    """Tables that have rows of this period; of the others no row is not the same as zero."""
    tables = dict.fromkeys(measure.witness for measure in _MEASURES)
    made = filter(scope.reader.is_made, tables)
    return [table for table in made if scope.extent(table)[1] is not None]


def _has_earlier(scope: Scope, table: str, start: datetime) -> bool:
    """Whether rows are older than the period before, so that the whole period can be compared."""
    return bool(scope.rows(EARLIER, table=table, before=literal(start)))


def _compared(
    scope: Scope, start: datetime, seen: Mapping[str, bool]
) -> list[tuple[_Measure, Row, bool]]:
    """Measures of tables that exist: both values, and whether the period before is known."""

    def values(measure: _Measure) -> tuple[_Measure, Row, bool]:
        row, *_ = scope.rows(BOTH, **measure.parts, before=literal(start))
        return measure, row, seen[measure.witness]

    is_made = scope.reader.is_made
    made = [each for each in _MEASURES if each.witness in seen and is_made(each.table)]
    return in_order(scope.reader, values, made)


def _sentences(scope: Scope, compared: Sequence[tuple[_Measure, Row, bool]]) -> Iterator[str]:
    """Other measures against the period before; once for all if nothing is known of that."""
    before = _before(scope)
    is_any_seen = any(is_seen for _, _, is_seen in compared)
    for measure, row, is_seen in (each for each in compared if not each[0].is_tile):
        start = f"{measure.words} {measure.show(row['now'])}"
        if is_seen:
            yield f"{start}, {_against(measure, row, before)}."
        else:
            yield f"{start} ({before} is not known)." if is_any_seen else f"{start}."
    if compared and not is_any_seen:
        yield f"No number can be compared: {before} is not known."


def _against(measure: _Measure, row: Row, before: str) -> str:
    now, then = row["now"], row["before"]
    if not then:
        return f"and none {before}" if now else f"as {before}"
    change = now / then - 1
    if abs(change) < _SAME:
        return f"the same as {before}"
    direction = "more" if change > 0 else "less"
    return f"{100 * abs(change):,.0f} % {direction} than {before} ({measure.show(then)})"


def _most_risen(compared: Sequence[tuple[_Measure, Row, bool]]) -> str:
    """The command that says who is behind the measure that rose most."""
    if not any(is_seen for _, _, is_seen in compared):
        return "Let `quotaflow run` read on: the next report has numbers to compare with."
    risen = [
        (row["now"] / row["before"] if row["before"] else float("inf"), measure)
        for measure, row, is_seen in compared
        if is_seen and row["now"] > row["before"] * (1 + _SAME)
    ]
    if not risen:
        return "No step is needed: no number rose."
    _, most = max(risen, key=lambda pair: pair[0])
    return f"`quotaflow {most.command}` names who is behind the number that rose most."


def _costs(scope: Scope, sections: Sequence[ReportSection]) -> Block:
    title = "What it costs"
    rows = scope.rows_if_made(RACK_COSTS)
    total = _total(costs_of(scope).total)
    if not rows or rows[0]["bytes"] is None:
        needs = "" if scope.has_log else f" That needs {IN_WORDS[SAMPLED_LOG]}."
        sentence = f"No bytes between racks are known of this time.{needs}"
        return Block(title, (sentence, *total))
    advice = next((each.advice for each in sections if each.title == rack_traffic.TITLE), "")
    action = advice.removeprefix("First: ")
    title += f" since {texts.moment(rows[0]['first_hour'])} UTC"
    sentences = (*_cost_sentences(rows[0]), *total)
    return Block(title, sentences, texts.capitalized(action))


def _total(costs: Row) -> tuple[str, ...]:
    """The cost of all, by item; nothing without a price."""
    if costs["cost"] is None:
        return ()
    items = [
        f"{texts.money(costs[f'{item}_cost'], costs['currency'])} {words}"
        for item, words in ITEMS.items()
        if costs[f"{item}_cost"] is not None
    ]
    total = texts.money(costs["cost"], costs["currency"])
    return (
        f"Clients and topics cost {total}: {', '.join(items)}. No client or topic pays for "
        "replication between racks.",
    )


def _cost_sentences(row: Row) -> Iterator[str]:
    crossed, avoidable = row["cross_rack_bytes"], row["avoidable_bytes"]
    if crossed is None:
        yield f"It is not known how much of {texts.size(row['bytes'])} crossed racks."
    else:
        yield f"{texts.size(crossed)} of {texts.size(row['bytes'])} crossed racks."
        if avoidable:
            yield f"Consumers could have read {texts.size(avoidable)} of that in their own rack."
        if row["unknown_bytes"]:
            yield f"For {texts.size(row['unknown_bytes'])} the rack of one side is not known."
    yield _money(row)


def _money(row: Row) -> str:
    cost, avoidable = row["cross_rack_cost"], row["avoidable_cost"]
    if cost is None:
        return (
            "The amount of money is not known: no snapshot has a price of conf "
            "(`prices.cross_rack_per_gib`), or no rack is known."
        )
    spared = texts.money(avoidable, row["currency"])
    part = f", {spared} of it for reads that could stay in their rack" if avoidable else ""
    return f"Bytes between racks cost {texts.money(cost, row['currency'])}{part}."
