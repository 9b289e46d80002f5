"""`quotaflow demo`: a real cluster, real clients, every job once, the tables and the plan."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from quotaflow.demo.traffic_report import TrafficReport

_PLAN_WAITS = 3
# The value of demo/traffic.py, which is slow to import; a test compares them.
_LEAST_SCALE = 0.25

_SHOWN: tuple[tuple[str, ...], ...] = (
    ("tables",),
    ("show", "requests", "--limit", "5"),
    ("show", "telemetry_pushes", "--limit", "5"),
    ("show", "telemetry_subscriptions", "--limit", "5"),
    ("show", "client_metrics", "--limit", "5"),
    ("show", "quarantine"),
    (
        "sql",
        "SELECT principal, sum(new_ids) AS new_ids, max(rate_per_s) AS max_rate_per_s, "
        "min(tokens) AS min_tokens, bool_or(is_violating) AS violated "
        "FROM producer_id_rates WHERE kind = 'allocation' "
        "GROUP BY principal ORDER BY new_ids DESC",
    ),
    (
        "sql",
        "SELECT principal, cause, is_accused, source, recommended_rate_per_s, quota_per_s "
        "FROM producer_id_advice WHERE cause IS NOT NULL ORDER BY principal",
    ),
    (
        "sql",
        "SELECT cause, ids, clients, hosts, source, source_ids, median_gap_ms, requests_per_id "
        "FROM producer_id_bursts WHERE principal = 'User:mallory'",
        "--json",
    ),
    (
        "sql",
        "SELECT principal, client_address, cause, step, blocked_reason, harm, producer_ids, "
        "allocating_connections FROM producer_id_offenders ORDER BY producer_ids DESC",
    ),
    ("what-if", "--producer-ids-rate", "0.5", "--principal", "User:mallory"),
    (
        "sql",
        "SELECT state, count(*) AS ids, count(principal) AS with_owner FROM producer_ids "
        "GROUP BY state ORDER BY state",
    ),
    ("why", "dave"),
    (
        "sql",
        "SELECT talker_rank, principal, client_id, produced_bytes, consumed_bytes, "
        "cross_rack_share FROM top_talkers ORDER BY talker_rank LIMIT 5",
    ),
    (
        "sql",
        "SELECT flow, client_rack, broker_rack, sum(bytes) AS bytes, "
        "sum(cross_rack_bytes) AS cross_rack_bytes FROM rack_traffic_by_hour "
        "GROUP BY flow, client_rack, broker_rack ORDER BY flow, client_rack, broker_rack",
    ),
    (
        "sql",
        "SELECT client_id, declared_rack, inferred_rack, read_rack, bytes, cross_rack_bytes, "
        "verdict FROM client_racks ORDER BY client_id",
    ),
    (
        "sql",
        "SELECT advice, client_rack, client_id, topic, "
        "CAST(saved_bytes_per_hour AS BIGINT) AS saved_bytes_per_hour "
        "FROM replica_advice ORDER BY saved_bytes_per_hour DESC, advice, topic",
    ),
    (
        "sql",
        "SELECT topic, side, broker_id, peer_broker_id, rate, peak_throttled_rate, "
        "stalled_fetches, is_effective, is_biting, reason FROM replication_throttles "
        "WHERE topic = 'bulk' ORDER BY event_time, side, broker_id, peer_broker_id",
    ),
    (
        "sql",
        "SELECT event_time, replica_id, CAST(bytes_left AS BIGINT) AS bytes_left, "
        "CAST(bytes_per_s AS BIGINT) AS bytes_per_s, eta_s, took_s FROM move_progress "
        "WHERE topic = 'bulk' ORDER BY event_time",
    ),
    (
        "sql",
        "SELECT topic, replica_id, state, requested_by, requested_time, joined_time "
        "FROM reassignments WHERE topic = 'bulk'",
    ),
    (
        "sql",
        "SELECT client_id, sum(fetches) AS fetches, sum(drained_fetches) AS drained, "
        "sum(wait_timeout_fetches) AS empty, sum(bytes) AS bytes, "
        "max(max_response_bytes) AS most_at_once FROM fetch_sizes WHERE replica_id IS NULL "
        "GROUP BY client_id ORDER BY fetches DESC",
    ),
    (
        "sql",
        "SELECT client_id, state, sum(expected_pushes) AS expected_pushes, "
        "sum(missing_pushes) AS missing_pushes, count(*) AS instances "
        "FROM client_coverage GROUP BY client_id, state ORDER BY client_id",
    ),
    (
        "sql",
        "SELECT rule, client_id, principal, first_breach, duration_ms, reason, peak_value "
        "FROM metric_alerts ORDER BY first_breach",
    ),
    (
        "sql",
        "SELECT subscription, metrics, interval_ms, match, matched_clients, mispredicted_clients "
        "FROM metric_subscriptions ORDER BY subscription",
    ),
    (
        "sql",
        "SELECT target, outcome, reason, sum(row_count) AS row_count FROM pipeline_progress "
        "GROUP BY target, outcome, reason ORDER BY target, outcome, reason",
    ),
)


def register(app: typer.Typer) -> None:
    """Add `demo` to the command line."""
    app.command()(demo)


def demo(
    scale: Annotated[
        float,
        typer.Option(min=_LEAST_SCALE, help="How long the traffic lasts: 1 is about 40 s."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the traffic.")] = 1,
) -> None:
    """Start a real three-broker cluster, let good and bad clients work, run every job, show it all.

    Takes two to three minutes and about 4 GB of memory; listens on 127.0.0.1 alone. Afterwards the
    cluster is stopped, and every command without --conf reads the tables it left. Needs a JDK.
    """
    # Not at module top: every `quotaflow --help` loads this module.
    from quotaflow.demo import story  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    run = partial(_run, console, allowed=(0, _PLAN_WAITS))
    report, place = story.play(seed, scale, _clock(console), run)
    for arguments in _SHOWN:
        _run(console, [*arguments, *place], allowed=(0,))
    _print_end(console, report, place)


def _clock(console: Console) -> Callable[[str], None]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(Text(f"{time.monotonic() - began:6.1f} s  {text}"), soft_wrap=True)

    return say


def _run(console: Console, arguments: list[str], allowed: tuple[int, ...]) -> None:
    shown = [f'"{argument}"' if " " in argument else argument for argument in arguments]
    from quotaflow.pipelines.__main__ import execute  # noqa: PLC0415  it loads this module
    from quotaflow.pipelines.errors import JobError  # noqa: PLC0415

    console.print(Text(f"\n$ quotaflow {' '.join(shown)}", style="bold"), soft_wrap=True)
    code = execute(arguments)
    if code not in allowed:
        raise JobError(f"quotaflow {arguments[0]} ended with exit code {code}")


def _print_end(console: Console, report: "TrafficReport", place: tuple[str, ...]) -> None:
    acked = sum(sum(client.records_acked.values()) for client in report.clients)
    where = " ".join(place)
    console.print(
        Text(
            f"\nThe clients wrote {acked} records and were given "
            f"{sum(client.producer_ids for client in report.clients)} producer ids, mallory "
            f"{report.producer_ids('User:mallory')} of them. Look further: "
            f'quotaflow show producer_id_rates --where "is_violating" {where}'.rstrip()
        ),
        soft_wrap=True,
    )
