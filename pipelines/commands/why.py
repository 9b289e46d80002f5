"""The command why: what limits a client, on one screen."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import output, values

if TYPE_CHECKING:
    from quotaflow.pipelines.advice.why import ClientLimits

_LIMIT_NAMES = (
    "client_id",
    "quota_type",
    "usage",
    "quota_bucket_usage",
    "quota",
    "set_for",
    "broker_id",
    "requests",
    "throttled",
    "throttle_time_ms",
)

Name = Annotated[
    str, typer.Argument(metavar="PRINCIPAL|CLIENT", help="User:alice, alice or a client id.")
]
At = Annotated[
    str | None,
    typer.Option("--at", help="End: 10m ago, or an ISO time; else the newest window."),
]
Lookback = Annotated[str, typer.Option("--for", help="How far back from the end: 30s, 5m, 1h.")]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("why")(why)


def why(
    name: Name,
    at: At = None,
    lookback: Lookback = "5m",
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    *,
    as_json: options.AsJson = False,
) -> None:
    """Show what limits a principal or a client, who set that, what it used, and what would help.

    Reads quota_usage, producer_id_rates and requests; needs no JVM. Quotas are those of the last
    `quotaflow snapshot`. The cause of a throttle is inferred: a broker does not log it. If the
    tables have several clusters, kafka.cluster_id chooses one. With --json, one object per sentence
    or row.

    Example: quotaflow why dave --at 10m
    """
    from quotaflow.pipelines.advice import why_text  # noqa: PLC0415  imports pydantic and pyarrow
    from quotaflow.pipelines.advice.why import why as find_limits  # noqa: PLC0415
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415
    from quotaflow.pipelines.feedback.kafka_configs import Connection  # noqa: PLC0415

    settings = options.conf(conf, overrides)
    until = options.since(at, datetime.now(UTC), "--at") if at else None
    reader, long = answers.open_reader(settings), timedelta(seconds=options.seconds(lookback))
    limits = find_limits(reader, name, until, long, settings.kafka.cluster_id)
    sentences = list(why_text.sentences(limits, Connection.from_conf(settings)))
    rows = [_limit(limited.usage) for limited in limits.limits]
    if as_json:
        output.lines(values.json_line(row) for row in _objects(limits, rows, sentences))
        return
    output.lines(_screen(limits, sentences))
    output.write(rows, _LIMIT_NAMES, by_importance=False)


def _screen(limits: "ClientLimits", sentences: list[str]) -> list[str]:
    lines = [f"{limits.name}, {limits.start:%Y-%m-%d %H:%M:%S} to {limits.end:%H:%M:%S} UTC", ""]
    lines += [f"- {sentence}" for sentence in sentences]
    lines += ["", *(_client(row) for row in limits.clients), ""]
    return [values.visible(line) for line in lines]


def _client(row: dict[str, Any]) -> str:
    software = f"{row['client_software_name']} {row['client_software_version']}"
    hosts = row["a_host"] if row["hosts"] == 1 else f"{row['hosts']} hosts"
    name = f"{row['principal']} as {row['client_id']}"
    return f"  {name}: {software} on {hosts}, {row['requests']} requests"


def _limit(row: dict[str, Any]) -> dict[str, Any]:
    from quotaflow.pipelines.advice.why_text import entity_text, quota_entity  # noqa: PLC0415

    set_for = None if row["quota"] is None else entity_text(quota_entity(row))
    shown = {name: row.get(name) for name in _LIMIT_NAMES}
    return shown | {
        "usage": row["most_used"],
        "set_for": set_for,
        "requests": row["all_requests"],
        "throttled": row["all_throttled_requests"],
        "throttle_time_ms": row["all_throttle_time_ms"],
    }


def _objects(
    limits: "ClientLimits", rows: list[dict[str, Any]], sentences: list[str]
) -> list[dict[str, Any]]:
    time_range = {
        "name": limits.name,
        "start": f"{limits.start:%FT%TZ}",
        "end": f"{limits.end:%FT%TZ}",
    }
    return [time_range | {"sentence": sentence} for sentence in sentences] + [
        time_range | row for row in rows
    ]
