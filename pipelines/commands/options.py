"""Options that commands share, and how they are read."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines import config
from quotaflow.pipelines.config import demo_tables
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import layout, output, values

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

ConfFile = Annotated[
    Path | None,
    typer.Option(
        "--conf",
        metavar="FILE",
        help=(
            "Conf; without it that of $QUOTAFLOW_CONF, or ~/.config/quotaflow/conf.yaml, or the "
            "packaged local.yaml."
        ),
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one value of conf: --set warehouse.path=/data."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line: times in UTC, bytes in base64.")
]
AsCsv = Annotated[
    bool,
    typer.Option(
        "--csv", help="CSV; text a spreadsheet would run gets a leading ' (JSON is exact)."
    ),
]
_Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME,...", help="Only these columns, in this order."),
]
_Wide = Annotated[
    bool, typer.Option("--wide", help="All columns and whole cells, wider than the terminal.")
]
_Vertical = Annotated[
    bool, typer.Option("-x", "--vertical", help="A block per row, with a line per column.")
]

TIMES = "10m ago, 19:45+02:00 or 2026-01-31T12:00 (UTC unless it has a zone)"
"""What an option takes as a time, for its help."""

Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"From {TIMES}.")]

_DURATION = re.compile(r"(\d{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def conf(file: Path | None, overrides: list[str] | None) -> "Conf":
    """The conf that these two options and the environment give."""
    return config.load(*config.given(file, overrides))


def conf_of_tables(file: Path | None, overrides: list[str] | None) -> "Conf":
    """The same, for a command that uses tables: a line says if a demo left them, and how old they
    are, unless conf names their place.
    """
    sources = config.given(file, overrides)
    settings = config.load(*sources)
    if ended_at := demo_tables.ended_at(settings.warehouse):
        age = values.duration(max((datetime.now(UTC) - ended_at).total_seconds(), 0))
        instead = (
            f"{sources.file} names none: set warehouse.path"
            if sources.file
            else "name your conf by --conf or QUOTAFLOW_CONF"
        )
        output.note(f"tables of the demo that ended {age} ago; {instead}")
    return settings


def with_layout(command: Callable[..., None]) -> Callable[..., None]:
    """The command with --json, --csv, --columns, --wide and -x in place of its last parameter.

    That is `layout`, a `Layout`.
    """

    def printing(
        *,
        as_json: AsJson = False,
        as_csv: AsCsv = False,
        columns: _Columns = None,
        wide: _Wide = False,
        vertical: _Vertical = False,
        **rest: object,
    ) -> None:
        chosen = layout.from_options(
            as_json=as_json, as_csv=as_csv, columns=columns, is_wide=wide, is_vertical=vertical
        )
        command(**rest, layout=chosen)

    def parameters(function: Callable[..., None]) -> list[Parameter]:
        return list(signature(function, eval_str=True).parameters.values())[:-1]

    listed = [*parameters(command), *parameters(printing)]
    named = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in listed]
    # Typer reads options from these.
    vars(printing)["__signature__"] = Signature(named)
    printing.__annotations__ = {each.name: each.annotation for each in named}
    printing.__doc__ = command.__doc__
    return printing


def seconds(duration: str) -> int:
    """Seconds in a duration such as 10s, 5m, 2h or 1d; at least 1."""
    match = _DURATION.fullmatch(duration.strip())
    if match is None or not int(match[1]):
        raise ConfigError(f"{duration!r} is no duration: write 10s, 5m, 2h or 1d")
    return int(match[1]) * _SECONDS[match[2]]


def since(text: str, now: datetime, option: str = "--since") -> datetime:
    """The time a duration ago, an ISO time, or the last time that a clock showed this hour.

    A time without a zone is UTC, on a machine of any zone. Raises ConfigError.
    """
    if _DURATION.fullmatch(text.strip()):
        return _ago(text, now, option)
    try:
        moment = _of_clock(text.strip(), now) or datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} {text!r}: write how long ago (10m, 2h), a time of the last 24 hours "
            "(19:45+02:00) or an ISO time (2026-01-31T12:00:00Z); without a zone it is UTC"
        ) from None


def _of_clock(text: str, now: datetime) -> datetime | None:
    """The newest time up to now at which a clock showed this; None for a text with a date."""
    if ":" not in text[:3]:
        return None
    shown = time.fromisoformat(text)
    zone = shown.tzinfo or UTC
    today = datetime.combine(now.astimezone(zone).date(), shown, zone)
    return today if today <= now else today - timedelta(days=1)


def _ago(duration: str, now: datetime, option: str) -> datetime:
    try:
        return now - timedelta(seconds=seconds(duration))
    except OverflowError:
        raise ConfigError(f"{option} {duration} is before the year 1: give a shorter one") from None
