"""The command metrics: searches metrics of clients and KIPs, prints files for our own metrics."""

import difflib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.monitoring import grafana, rule_file
from quotaflow.pipelines.monitoring.grafana import BOARDS, OWN
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.schemas.kip_metrics import KIP_METRICS
from quotaflow.schemas.metrics import METRICS, PREFIX, Metric
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf
    from quotaflow.schemas.kip_metrics import KipMetric

_OF_CATALOGUE = ("name", "kip_name", "unit", "kind", "clients", "meaning", "kip", "is_standard")
COLUMNS = (*_OF_CATALOGUE, "sent_as", "answers")
CLIENTS = ("java", "librdkafka")
KINDS = ("gauge", "sum", "histogram")
KIPS = ("KIP-714", "KIP-936", "KIP-73", "KIP-392", "KIP-74", "KIP-1091")
_NEAREST = 3
_AVERAGE = re.compile(r"\.avg[0-9]+s$")


class NoMatchError(QuotaflowError):
    """No metric has the given words; the message names the nearest metrics."""


_Pattern = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATTERN", help="Words that the name or meaning must have; all metrics without it."
    ),
]
_Client = Annotated[
    str | None,
    typer.Option(
        "--client",
        help=f"Only of one library: {' or '.join(CLIENTS)}.",
        autocompletion=lambda: CLIENTS,
    ),
]
_Kind = Annotated[
    str | None,
    typer.Option(
        "--kind", help=f"Only of one kind: {' or '.join(KINDS)}.", autocompletion=lambda: KINDS
    ),
]
_Kip = Annotated[
    str | None,
    typer.Option(
        "--kip", help="Only names of one KIP, such as KIP-73.", autocompletion=lambda: KIPS
    ),
]
_Rules = Annotated[
    bool,
    typer.Option(
        "--rules", help="Print alerts on quotaflow itself and on answers, as Prometheus' rules."
    ),
]
_Runbooks = Annotated[
    str,
    typer.Option(
        "--runbooks",
        metavar="URL",
        help="Where the documentation's page runbook is served, for links of --rules.",
    ),
]
_Grafana = Annotated[
    bool,
    typer.Option("--grafana", help="Print a Grafana dashboard of quotaflow itself, to import."),
]
_Board = Annotated[
    str,
    typer.Option(
        "--board",
        metavar="NAME",
        help=f"With --grafana: a dashboard of answers: {', '.join(BOARDS[1:])}.",
        autocompletion=lambda: BOARDS,
    ),
]


def metrics(
    pattern: _Pattern = None,
    *,
    client: _Client = None,
    kind: _Kind = None,
    kip: _Kip = None,
    rules: _Rules = False,
    runbooks: _Runbooks = "",
    grafana: _Grafana = False,
    board: _Board = OWN,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """List or search metrics: name, unit, kind, clients, meaning, and names of the KIPs.

    Needs no JVM and no tables. The search ignores case, and also finds names as JMX has them, such
    as records-lag-max. For a name of a KIP or its draft it shows what is sent instead, or that no
    client sends it, and the column that has the values. Standard metrics are those
    of KIP-714. `quotaflow show unknown_metrics` shows other metrics that came. With --rules or
    --grafana it prints files for the metrics of quotaflow itself, and of answers that conf exports
    (monitoring.export), with the thresholds of conf.

    Example: quotaflow metrics throttle time --client librdkafka

    Example: quotaflow metrics --grafana > quotaflow-dashboard.json

    Example: quotaflow metrics --grafana --board groups > groups-dashboard.json
    """
    if rules or grafana:
        if (rules and grafana) or any((pattern, client, kind, kip)) or layout != Layout():
            raise ConfigError("--rules and --grafana print a file each: give one of them, alone")
        output.lines([_of_ourselves(conf.load(), runbooks, board, rules=rules)])
        return
    _check_choices(client, kind, kip, board)
    metrics = _all_metrics()
    candidates = [m for m in metrics if _is_candidate(m, client, kind, kip)]
    if kip and not candidates:
        raise NoMatchError(f"{kip} names no metric that fits")
    matches = _matches(candidates, " ".join(pattern or []).lower().split())
    if layout != Layout():
        output.write((_row(m) for m in matches), COLUMNS, layout)
        return
    # Not a table: nobody can subscribe to a name that a cell cuts.
    output.lines(line for metric in matches for line in _text(metric))
    output.note(f"{len(matches)} of {counted(len(metrics), 'metric')}")


def _check_choices(client: str | None, kind: str | None, kip: str | None, board: str) -> None:
    if board != OWN:
        raise ConfigError("--board names a dashboard: give --grafana too")
    _check("--client", client, CLIENTS)
    _check("--kind", kind, KINDS)
    _check("--kip", kip, KIPS)


def _all_metrics() -> "list[Metric | KipMetric]":
    metrics: list[Metric | KipMetric] = [*METRICS.values(), *KIP_METRICS]
    return sorted(metrics, key=lambda metric: (metric.name, metric.kip or ""))


def _of_ourselves(conf: "Conf", runbooks: str, board: str, *, rules: bool) -> str:
    """The rule file, or the dashboard."""
    _check("--board", board, BOARDS)
    if rules:
        return rule_file.text(conf.health, runbooks).rstrip()
    return grafana.text(conf.health, board)


def _matches(
    candidates: "list[Metric | KipMetric]", words: list[str]
) -> "list[Metric | KipMetric]":
    """Those that have all words. Raises NoMatchError with the nearest ones if there are none."""
    matches = [metric for metric in candidates if _has(metric, words)]
    if not matches:
        raise NoMatchError(_no_match(words, [metric.name for metric in candidates]))
    return matches


def _check(option: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value not in (None, *allowed):
        raise ConfigError(f"{option} {value} is unknown: one of {' '.join(allowed)}")


def _is_candidate(
    metric: "Metric | KipMetric", client: str | None, kind: str | None, kip: str | None
) -> bool:
    row = _row(metric)
    return (
        client in (None, *_libraries(row["clients"]))
        and kind in (None, row["kind"])
        and kip in (None, row["kip"])
    )


def _libraries(clients: list[str]) -> list[str]:
    """The libraries by the last part of their names: java for apache-kafka-java."""
    return [client.rpartition("-")[2] for client in clients]


def _has(metric: "Metric | KipMetric", words: list[str]) -> bool:
    row = _row(metric)
    meaning, name = row["meaning"].lower(), _dotted(row["name"].lower())
    in_kip = [] if row["sent_as"] == [row["name"]] else [row["kip"].lower()]
    return all(word in meaning or _dotted(word) in name or word in in_kip for word in words)


def _dotted(word: str) -> str:
    """A name as JMX, an attribute or a KIP's draft spells it, with dots as in telemetry.

    The draft has org.apache.kafka/client, and .avg60s behind a histogram's name for its average.
    """
    dotted = word.translate(str.maketrans("-_/", "..."))
    return _AVERAGE.sub("", dotted)


def _no_match(words: list[str], names: list[str]) -> str:
    near = _nearest(_dotted(".".join(words)), names)
    hint = f"nearest: {', '.join(near)}" if near else "`quotaflow metrics` lists all"
    return f"no such metric has {' and '.join(map(repr, words))} in its name or meaning ({hint})"


def _nearest(pattern: str, names: list[str]) -> list[str]:
    """Names with a piece most like the pattern; pieces have as many parts as the pattern."""
    pattern = pattern.removeprefix(PREFIX)
    length = pattern.count(".") + 1
    pieces: dict[str, str] = {}
    for name in names:
        parts = name.removeprefix(PREFIX).split(".")
        for start in range(max(len(parts) - length, 0) + 1):
            pieces.setdefault(".".join(parts[start : start + length]), name)
    near = difflib.get_close_matches(pattern, pieces, n=_NEAREST)
    return list(dict.fromkeys(pieces[piece] for piece in near))


def _row(metric: "Metric | KipMetric") -> dict[str, Any]:
    """Both kinds in one shape: a name of a KIP that is not sent so has no unit and no clients."""
    if isinstance(metric, Metric):
        row = {name: getattr(metric, name) for name in _OF_CATALOGUE}
        return row | {"clients": list(metric.clients), "sent_as": [metric.name], "answers": []}
    return {
        "name": metric.name,
        "kip_name": metric.name,
        "unit": None,
        "kind": metric.kind,
        "clients": [],
        "meaning": metric.remark,
        "kip": metric.kip,
        "is_standard": False,
        "sent_as": list(metric.sent_as),
        "answers": list(metric.answers),
    }


def _text(metric: "Metric | KipMetric") -> Iterator[str]:
    row = _row(metric)
    facts = [row["name"], row["unit"], row["kind"], ", ".join(_libraries(row["clients"]))]
    yield "  ".join(fact for fact in (*facts, row["kip"]) if fact)
    yield f"    {row['meaning']}"
    if row["sent_as"] != [row["name"]]:
        names = ", ".join(row["sent_as"])
        yield f"    sent as: {names}" if names else "    nobody sends it"
    if row["answers"]:
        yield f"    in quotaflow: {', '.join(row['answers'])}"
