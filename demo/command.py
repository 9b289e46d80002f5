"""`quotaflow demo`: a real cluster, real clients, every job, a plan and its effect, the tables."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from quotaflow.demo.traffic_report import TrafficReport

_PLAN_WAITS = 3
# The value of demo/traffic.py, which is slow to import; a test compares them.
_LEAST_SCALE = 0.25


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
    hand = story.Stagehand(
        say=_clock(console),
        sentence=lambda text: console.print(Text(f"\n{text}"), soft_wrap=True),
        run=lambda arguments, place: _run(console, arguments, place),
    )
    report = story.play(seed, scale, hand)
    _print_end(console, report)


def _clock(console: Console) -> Callable[[str], None]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(Text(f"{time.monotonic() - began:6.1f} s  {text}"), soft_wrap=True)

    return say


def _run(console: Console, arguments: list[str], place: list[str]) -> None:
    words = [f'"{argument}"' if " " in argument else argument for argument in arguments]
    from quotaflow.pipelines.__main__ import execute  # noqa: PLC0415  it loads this module
    from quotaflow.pipelines.errors import JobError  # noqa: PLC0415

    console.print(Text(f"$ quotaflow {' '.join(words)}", style="bold"), soft_wrap=True)
    if (code := execute([*arguments, *place])) not in (0, _PLAN_WAITS):
        raise JobError(f"quotaflow {arguments[0]} ended with exit code {code}")


def _print_end(console: Console, report: "TrafficReport") -> None:
    acked = sum(sum(client.records_acked.values()) for client in report.clients)
    console.print(
        Text(
            f"The clients wrote {acked} records and were given "
            f"{sum(client.producer_ids for client in report.clients)} producer ids, mallory "
            f"{report.producer_ids('User:mallory')} of them."
        ),
        soft_wrap=True,
    )
