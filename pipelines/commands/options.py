"""Options that commands share, and how they are read."""

from collections.abc import Callable
from datetime import UTC, datetime
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines import config
from quotaflow.pipelines.config import demo_tables
from quotaflow.pipelines.terminal import layout, output, texts, times

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

Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"From {times.FORMS}.")]


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
        age = texts.age(ended_at, datetime.now(UTC))
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
