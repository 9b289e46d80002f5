"""Options that commands share, and how they are read."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines import config
from quotaflow.pipelines.config import demo_tables
from quotaflow.pipelines.terminal import layout, logs, output, texts, times
from quotaflow.pipelines.terminal.layout import Layout

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

_TERMINAL_S = 60
_ConfFile = Annotated[
    Path | None,
    typer.Option(
        "--conf",
        metavar="FILE",
        help=(
            "The conf file; else that of $QUOTAFLOW_CONF, ~/.config/quotaflow/conf.yaml, or the "
            "packaged local.yaml."
        ),
    ),
]
_Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one value of conf: --set warehouse.path=/data."
    ),
]
_AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line: times in UTC, bytes in base64.")
]
_AsCsv = Annotated[
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


def relations() -> list[str]:
    """Names of tables and views, for completion."""
    from quotaflow.pipelines.warehouse import views  # noqa: PLC0415  only at a Tab
    from quotaflow.schemas.tables.catalog import TABLES  # noqa: PLC0415

    return [*TABLES, *views.load()]


Parquet = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE.parquet", help="Write all rows to this file of Parquet."),
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"From {times.FORMS}.")]


_SERVERS = "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class ConfOptions:
    """What --conf and --set give to a command."""

    file: Path | None
    overrides: list[str] | None

    def load(self) -> "Conf":
        """The conf that these two options and the environment give."""
        return config.load(*config.given(self.file, self.overrides))

    def of_advice(self) -> "Conf":
        """The same, for advice: its commands name no address that only the packaged conf has."""
        settings = self.of_tables()
        properties = settings.kafka.properties
        packaged = config.load().kafka.properties.get(_SERVERS)
        if config.given(self.file).file or properties.get(_SERVERS) != packaged:
            return settings
        others = {name: value for name, value in properties.items() if name != _SERVERS}
        kafka = settings.kafka.model_copy(update={"properties": others})
        return settings.model_copy(update={"kafka": kafka})

    def of_tables(self) -> "Conf":
        """The same, for a command that uses tables: a line says if a demo left them, and how old
        they are, unless conf names their place.
        """
        sources = config.given(self.file, self.overrides)
        settings = config.load(*sources)
        logs.detail(f"conf {sources.file or 'of no file'}, tables in {settings.warehouse.location}")
        if ended_at := demo_tables.ended_at(settings.warehouse):
            age = texts.age(ended_at, datetime.now(UTC))
            instead = (
                f"{sources.file} names none: set warehouse.path"
                if sources.file
                else "name your conf by --conf or QUOTAFLOW_CONF"
            )
            output.note(f"tables of the demo that ended {age} ago; {instead}")
        return settings


def bounded(settings: "Conf") -> "Conf":
    """The conf for SQL of a person: a query on a terminal ends soon, if conf has no time for it."""
    section = settings.warehouse
    if "query_timeout_s" in section.model_fields_set or not sys.stdout.isatty():
        return settings
    soon = section.model_copy(update={"query_timeout_s": _TERMINAL_S})
    return settings.model_copy(update={"warehouse": soon})


FormLayout = Annotated[Layout, "--json or --csv"]
"""The layout of a command whose text is no table, and has no columns to choose."""


def _conf(*, conf: _ConfFile = None, overrides: _Overrides = None) -> ConfOptions:
    return ConfOptions(conf, overrides)


def _form(*, as_json: _AsJson = False, as_csv: _AsCsv = False) -> Layout:
    return layout.from_options(as_json=as_json, as_csv=as_csv)


def _layout(
    *,
    as_json: _AsJson = False,
    as_csv: _AsCsv = False,
    columns: _Columns = None,
    wide: _Wide = False,
    vertical: _Vertical = False,
) -> Layout:
    return layout.from_options(
        as_json=as_json, as_csv=as_csv, columns=columns, is_wide=wide, is_vertical=vertical
    )


_READERS: dict[object, Callable[..., object]] = {
    ConfOptions: _conf,
    FormLayout: _form,
    Layout: _layout,
}
"""Types of parameters that several options give, each with the function that reads these."""


def parsed(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer calls it: with options in place of parameters that several give."""
    parameters = signature(command).parameters
    readers = {
        name: _READERS[each.annotation]
        for name, each in parameters.items()
        if each.annotation in _READERS
    }

    def called(**given: object) -> None:
        for name, reader in readers.items():
            given[name] = reader(**{each: given.pop(each) for each in signature(reader).parameters})
        command(**given)

    listed = [
        option.replace(kind=Parameter.KEYWORD_ONLY)
        for name, each in parameters.items()
        for option in (signature(readers[name]).parameters.values() if name in readers else [each])
    ]
    # Typer reads options from these.
    vars(called)["__signature__"] = Signature(listed)
    called.__annotations__ = {each.name: each.annotation for each in listed}
    called.__doc__ = command.__doc__
    return called
