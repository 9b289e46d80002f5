"""Rows of answers as metrics: those that conf's monitoring.export names, each past a bound.

A label has what a client chose, so it is bounded: in its length, and in the number of rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter

from quotaflow.pipelines.areas.costs import COST_ITEMS
from quotaflow.pipelines.areas.question import OF_ALL, Question, filled
from quotaflow.pipelines.config.monitoring import Export
from quotaflow.pipelines.errors import NeverMadeError, QuotaflowError
from quotaflow.pipelines.monitoring.own_metrics import Alert, OwnMetric
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.terminal.values import visible
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import like_pattern, literal
from quotaflow.pipelines.warehouse.time_ranges import Since

_MAX_CHARS = 100
DROPPED = OwnMetric(
    "series_dropped",
    "Rows of an exported answer past its bound that are no metric, because `top` others are worse",
    ("answer",),
    alerts=(
        Alert(
            name="QuotaflowSeriesDropped",
            expr="quotaflow_series_dropped > 0",
            for_="1h",
            severity="warning",
            summary="{{ $value }} rows of the answer {{ $labels.answer }} are no metric",
            description="More are past the bound than conf exports: alerts on answers miss them.",
            steps=(
                "Raise `top` or `above` of `monitoring.export`, or name who matters in `names`.",
            ),
        ),
    ),
)


FAILING = OwnMetric(
    "answer_export_failing",
    "1 if the exported answer could not be read, and so has no metrics now, else 0",
    ("answer",),
    alerts=(
        Alert(
            name="QuotaflowExportFailing",
            expr="quotaflow_answer_export_failing > 0",
            for_="15m",
            severity="warning",
            summary="The answer {{ $labels.answer }} cannot be read, and is no metric",
            description="Alerts on this answer cannot fire. Other answers are exported.",
            steps=(
                "The log of the job that exports has the error: search it for `monitoring.export`.",
            ),
        ),
    ),
)
ABOUT_EXPORTS = (DROPPED, FAILING)
"""The metrics of the export itself."""


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """An answer that can be exported; `board` is the dashboard of its charts.

    Rows have `labels`, of which conf filters by `named_by`, and a column of each metric. A row is
    exported while the first metric is more than `above`. `sql` is about the tables of `reads`.
    """

    answer: str
    board: str
    named_by: str
    labels: tuple[str, ...]
    above: float
    reads: tuple[str, ...]
    sql: str
    metrics: tuple[OwnMetric, ...]


_TEXT = files("quotaflow.pipelines.monitoring").joinpath("answer_metrics.yaml").read_text("utf-8")
_EVERY = TypeAdapter(tuple[ExportedAnswer, ...], config=ConfigDict(extra="forbid"))
ANSWERS: Mapping[str, ExportedAnswer] = {
    each.answer: each for each in _EVERY.validate_python(yaml.safe_load(_TEXT))
}
"""Every answer that can be exported, by name."""
BOARDS = tuple(dict.fromkeys(each.board for each in ANSWERS.values()))
"""The dashboards of answers."""


def alerts() -> Iterator[Alert]:
    """Every alert on answers."""
    for metric in (*metrics(), *ABOUT_EXPORTS):
        yield from metric.alerts


def metrics(board: str | None = None) -> Iterator[OwnMetric]:
    """The metrics of answers with their labels: of all, or of one dashboard."""
    for answer in ANSWERS.values():
        if board in {None, answer.board}:
            for each in answer.metrics:
                yield OwnMetric(
                    each.name, each.meaning, answer.labels, "gauge", each.alerts, each.chart
                )


def samples(
    exports: Sequence[Export], reader: Reader, now: datetime
) -> Iterator[tuple[OwnMetric, list[tuple[list[str], float]]]]:
    """Each metric of the exported answers with its samples: values of its labels, and its value.

    An answer that cannot be read has none; the others have theirs.
    """
    dropped: list[tuple[list[str], float]] = []
    failing: list[tuple[list[str], float]] = []
    for export in exports:
        answer = ANSWERS[export.answer]
        try:
            rows = _rows(answer, export, reader, now)
        except QuotaflowError as error:
            logs.report(logs.warning(f"monitoring.export: {answer.answer}: {error}"))
            failing.append(([answer.answer], 1.0))
            continue
        failing.append(([answer.answer], 0.0))
        by_labels: dict[tuple[str, ...], Mapping[str, Any]] = {}
        for row in rows:
            by_labels.setdefault(tuple(_shown(row[name]) for name in answer.labels), row)
        dropped.append(([answer.answer], (rows[0][OF_ALL] if rows else 0) - len(by_labels)))
        for metric in answer.metrics:
            values = ((list(labels), row[metric.name]) for labels, row in by_labels.items())
            declared = OwnMetric(metric.name, metric.meaning, answer.labels)
            yield declared, [(labels, float(v)) for labels, v in values if v is not None]
    if exports:
        yield DROPPED, dropped
        yield FAILING, failing


def _rows(
    answer: ExportedAnswer, export: Export, reader: Reader, now: datetime
) -> list[dict[str, Any]]:
    """The rows past the bound, furthest first, with the number of all of them."""
    from quotaflow.pipelines.warehouse import views  # noqa: PLC0415  imports pyarrow

    rank, bound = answer.metrics[0].name, answer.above if export.above is None else export.above
    conditions = [f"{rank} > {bound!r}"]
    if export.names:
        column = f'"{answer.named_by}"'
        tests = (f"{column} LIKE {literal(like_pattern(n))} ESCAPE '!'" for n in export.names)
        conditions.append(f"({' OR '.join(tests)})")
    in_order = ", ".join(f'"{name}"' for name in answer.labels)
    question = Question(answer.sql, f"{rank} DESC, {in_order}").where(" AND ".join(conditions))
    parts = {"now": literal(now), "cost_items": COST_ITEMS, "limit": str(export.top)}
    sql = filled(question.counted_rows, parts)
    unmade = frozenset(name for name in views.required(answer.reads) if not reader.is_made(name))
    day_ago = now - timedelta(days=1)
    try:
        return reader.with_empty(unmade).rows(sql, Since(day_ago, day_ago))
    except NeverMadeError:
        return []


def _shown(value: Any) -> str:
    """A label's value: what prints, and not too long."""
    text = visible(str(value)) if value is not None else ""
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}..."
