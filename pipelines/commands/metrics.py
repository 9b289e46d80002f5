"""The command metrics: lists and searches the catalogue of client metrics (KIP-714)."""

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.terminal import output

if TYPE_CHECKING:
    from quotaflow.schemas.metrics import Metric

COLUMNS = ("name", "kip_name", "unit", "kind", "clients", "meaning", "kip", "is_standard")
CLIENTS = ("java", "librdkafka")
KINDS = ("gauge", "sum")
_NEAREST = 3


class NoMatchError(QuotaflowError):
    """No metric has the given words; the message names the nearest metrics."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("metrics")(list_metrics)


def list_metrics(
    pattern: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN",
            help="Words that the name or meaning must have; all metrics without it.",
        ),
    ] = None,
    *,
    client: Annotated[
        str | None, typer.Option("--client", help=f"Only of one library: {' or '.join(CLIENTS)}.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"Only of one kind: {' or '.join(KINDS)}.")
    ] = None,
    as_json: options.AsJson = False,
    as_csv: options.AsCsv = False,
) -> None:
    """List or search the metrics clients push: name, unit, kind, clients, meaning.

    Needs no JVM and no tables. The search ignores case, and also finds names as JMX has them, such
    as records-lag-max. A KIP is shown if its list of telemetry names has the metric; those of
    KIP-714 are its standard ones. `quotaflow show unknown_metrics` shows other metrics that came.

    Example: quotaflow metrics throttle time --client librdkafka
    """
    options.one_format(as_json, as_csv)
    _check("--client", client, CLIENTS)
    _check("--kind", kind, KINDS)
    from quotaflow.schemas.metrics import METRICS  # noqa: PLC0415  only this command reads the list

    words = " ".join(pattern or []).lower().split()
    listed = sorted(METRICS.values(), key=lambda metric: metric.name)
    candidates = [m for m in listed if client in (None, *_clients(m)) and kind in (None, m.kind)]
    matches = [metric for metric in candidates if _has(metric, words)]
    if not matches:
        raise NoMatchError(_no_match(words, [metric.name for metric in candidates]))
    if as_json or as_csv:
        output.write((_row(m) for m in matches), COLUMNS, as_json=as_json, as_csv=as_csv)
    else:
        # Not a table: names are longer than its cells, and a cut name cannot be subscribed to.
        output.lines(line for metric in matches for line in _text(metric))
        output.note(f"{len(matches)} of {len(listed)} metrics")


def _check(option: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value not in (None, *allowed):
        raise ConfigError(f"{option} {value} is unknown: one of {' '.join(allowed)}")


def _clients(metric: "Metric") -> list[str]:
    """The libraries by the last part of their names: java for apache-kafka-java."""
    return [client.rpartition("-")[2] for client in metric.clients]


def _has(metric: "Metric", words: list[str]) -> bool:
    meaning = metric.meaning.lower()
    return all(word in meaning or _dotted(word) in metric.name for word in words)


def _dotted(word: str) -> str:
    """A name as JMX or an attribute spells it, with dots as in telemetry."""
    return word.replace("-", ".").replace("_", ".")


def _no_match(words: list[str], names: list[str]) -> str:
    near = _nearest(_dotted(".".join(words)), names)
    hint = f"nearest: {', '.join(near)}" if near else "`quotaflow metrics` lists all"
    return f"no such metric has {' and '.join(map(repr, words))} in its name or meaning ({hint})"


def _nearest(pattern: str, names: list[str]) -> list[str]:
    """Names with a piece most like the pattern; pieces have as many parts as the pattern."""
    from quotaflow.schemas.metrics import PREFIX  # noqa: PLC0415

    pattern = pattern.removeprefix(PREFIX)
    length = pattern.count(".") + 1
    pieces: dict[str, str] = {}
    for name in names:
        parts = name.removeprefix(PREFIX).split(".")
        for start in range(max(len(parts) - length, 0) + 1):
            pieces.setdefault(".".join(parts[start : start + length]), name)
    near = difflib.get_close_matches(pattern, pieces, n=_NEAREST)
    return list(dict.fromkeys(pieces[piece] for piece in near))


def _row(metric: "Metric") -> dict[str, Any]:
    return {name: getattr(metric, name) for name in COLUMNS} | {"clients": list(metric.clients)}


def _text(metric: "Metric") -> Iterator[str]:
    facts = [metric.name, metric.unit, metric.kind, ", ".join(_clients(metric)), metric.kip]
    yield "  ".join(fact for fact in facts if fact)
    yield f"    {metric.meaning}"
