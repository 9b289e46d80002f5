"""Options that commands share, and how they are read."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.errors import ConfigError

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

ConfFile = Annotated[
    Path | None,
    typer.Option("--conf", metavar="FILE", help="Conf to use instead of the packaged local.yaml."),
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

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From 10m ago, or an ISO time."),
]

_DURATION = re.compile(r"(\d{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def conf(file: Path | None, overrides: list[str] | None) -> "Conf":
    """The conf that these two options give."""
    from quotaflow.pipelines.config import load  # noqa: PLC0415  --help needs no pydantic

    return load(file, overrides)


def one_format(as_json: bool, as_csv: bool) -> None:
    """Raise ConfigError if both formats are given."""
    if as_json and as_csv:
        raise ConfigError("--json and --csv exclude each other: give one")


def seconds(duration: str) -> int:
    """Seconds in a duration such as 10s, 5m, 2h or 1d; at least 1."""
    match = _DURATION.fullmatch(duration.strip())
    if match is None or not int(match[1]):
        raise ConfigError(f"{duration!r} is no duration: write 10s, 5m, 2h or 1d")
    return int(match[1]) * _SECONDS[match[2]]


def since(text: str, now: datetime, option: str = "--since") -> datetime:
    """The time a duration ago, or an ISO time; a time without a zone is UTC."""
    if _DURATION.fullmatch(text.strip()):
        return _ago(text, now, option)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(
            f"{option} {text!r}: write how long ago (10m, 2h) or an ISO time (2026-01-31T12:00:00Z)"
        ) from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _ago(duration: str, now: datetime, option: str) -> datetime:
    try:
        return now - timedelta(seconds=seconds(duration))
    except OverflowError:
        raise ConfigError(f"{option} {duration} is before the year 1: give a shorter one") from None
