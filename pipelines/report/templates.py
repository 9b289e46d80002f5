"""The templates of pages, and what they may call. Every text is escaped."""

import re
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING

from quotaflow.pipelines import extras
from quotaflow.pipelines.areas.finding import NOW, SOMETIME, SOON
from quotaflow.pipelines.errors import MissingToolError

if TYPE_CHECKING:
    from jinja2 import Environment

    from quotaflow.pipelines.report.section import GridColumn

_WORD_END = re.compile(r"([._])(?=[^\W\d])")
_COMMAND = re.compile(r"`([^`]+)`|(?<=: )(kafka-configs\.sh .+)$")
_OPTION = re.compile(r"(?<= )--[a-z-]+")
RANKS = {0: "Ended", NOW: "Now", SOON: "Soon", SOMETIME: "Sometime"}
"""Words for the ranks of alarms, and for an incident that ended."""


def _no_address(_column: "GridColumn", _cell: str) -> str:
    return ""


def environment(
    address: "Callable[[GridColumn, str], str]" = _no_address, package: str | None = None
) -> "Environment":
    """Templates of this package and of another one.

    `address` gives the page of a cell of a grid; empty for none. Raises MissingToolError if jinja2
    is not installed.
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415  an extra
        from markupsafe import Markup, escape  # noqa: PLC0415
    except ModuleNotFoundError as error:
        install = extras.install("report")
        raise MissingToolError(f"a report needs {error.name}: {install}") from error
    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: read(name, package)),
    )
    made.globals.update(
        ranks=RANKS,
        address=address,
        # Names of configs and metrics may break after each word.
        breakable=lambda text: Markup(  # noqa: S704  escaped first
            _WORD_END.sub(r"\1<wbr>", str(escape(text)))
        ),
        marked=lambda text: Markup(  # noqa: S704  escaped first
            _COMMAND.sub(_code, str(escape(text)))
        ),
    )
    return made


def _code(command: re.Match[str]) -> str:
    """A command in markup; its options do not break at their hyphens."""
    words = _OPTION.sub(r'<span class="option">\g<0></span>', command[1] or command[2])
    return f"<code>{words}</code>"


def read(name: str, package: str | None = None) -> str:
    """A file of this package, else of the other one."""
    own = resources.files("quotaflow.pipelines.report") / name
    file = own if package is None or own.is_file() else resources.files(package) / name
    return file.read_text(encoding="utf-8")
