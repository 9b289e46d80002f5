"""`quotaflow demo`: a real cluster, real clients, every job, a plan and its effect, the tables."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

_PLAN_WAITS = 3
# The value of demo/traffic.py, which is slow to import; a test compares them.
_LEAST_SCALE = 0.5
_EXTRAS = {"report": "jinja2", "quality": "great_expectations"}
"""Extras beside `demo` and `local`, each with a package of it."""


def register(app: typer.Typer) -> None:
    """Add `demo` to the command line."""
    app.command()(demo)


def demo(
    scale: Annotated[
        float,
        typer.Option(min=_LEAST_SCALE, help="How long the traffic lasts: 1 is about 20 s."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the traffic.")] = 1,
    *,
    keep_running: Annotated[
        bool,
        typer.Option(
            "--keep-running", help="Leave cluster, clients, jobs and pages at work until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Start a real three-broker cluster, let good and bad clients work, run every job, show it all.

    Takes one to two minutes on two cores, and about 4 GB of memory; listens on 127.0.0.1 alone.
    Afterwards the cluster is stopped, and every command without a conf reads the tables it left.
    Reads no conf from the environment. Needs a JDK.
    """
    # Not at module top: every `quotaflow --help` loads this module.
    from quotaflow.demo import story  # noqa: PLC0415
    from quotaflow.pipelines import interrupts  # noqa: PLC0415

    _require_extras()
    console = Console(stderr=True, highlight=False)
    display = story.Display(
        say=_clock(console),
        sentence=lambda text: console.print(Text(f"\n{text}"), soft_wrap=True),
        run=lambda arguments, place: _run(console, arguments, place),
    )
    story.play(seed, scale, display, keeps_running=keep_running)
    if keep_running:
        raise typer.Exit(interrupts.EXIT_CODE)


def _require_extras() -> None:
    """Raise MissingToolError at once for what the story needs at its end."""
    from quotaflow.pipelines import extras  # noqa: PLC0415  every --help loads this module
    from quotaflow.pipelines.errors import MissingToolError  # noqa: PLC0415

    if missing := [extra for extra, package in _EXTRAS.items() if find_spec(package) is None]:
        raise MissingToolError(extras.install(*missing))


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
