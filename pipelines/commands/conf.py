"""The command conf: checks and shows conf, describes its keys, and prints its schema."""

import json
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.config import Conf, given, load, origins, schema
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import grid, output, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

_COLUMNS = ["key", "value", "source"]
_KEY_COLUMNS = ["key", "default", "meaning"]
_PIPE_WIDTH = 100


class Action(StrEnum):
    """What `conf` does."""

    CHECK = "check"
    SHOW = "show"
    KEYS = "keys"
    SCHEMA = "schema"


def conf(
    action: Annotated[
        Action, typer.Argument(metavar="ACTION", help="check, show, keys or schema.")
    ],
    prefix: Annotated[
        str | None,
        typer.Argument(
            metavar="[PREFIX]", help="With show and keys: only keys that begin so: kafka."
        ),
    ] = None,
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Check conf, show where values come from, describe its keys, or print its schema.

    The action check reads no cluster and no secret, and names every problem. Exit code 2: there is
    one. The action show prints each value with what gives it: --set, a variable of the environment,
    a line of the file, or the default. Secrets stay references. The action keys describes each key
    with its default, and reads no conf. The action schema is for editors of YAML. Write its output
    to a file beside conf.yaml, and begin conf.yaml with the line
    `# yaml-language-server: $schema=quotaflow.schema.json`.

    Example: quotaflow conf check --conf setup/conf.yaml

    Example: quotaflow conf show kafka --conf setup/conf.yaml

    Example: quotaflow conf keys teams

    Example: quotaflow conf schema > setup/quotaflow.schema.json
    """
    if prefix is not None and action not in {Action.SHOW, Action.KEYS}:
        raise ConfigError(f"{prefix}: only `conf show` and `conf keys` take the beginning of keys")
    if action is Action.KEYS:
        _describe(prefix or "", layout)
        return
    if action is Action.SCHEMA:
        output.lines([json.dumps(schema.schema(), indent=2)])
        return
    if action is Action.CHECK:
        output.lines([_checked(conf)])
        return
    _show(conf, prefix or "", layout)


def _show(place: options.ConfOptions, prefix: str, layout: Layout) -> None:
    rows: list[dict[str, Any]] = [
        {"key": each.key, "value": values.plain(each.value), "source": each.source}
        for each in _loaded(place)[1]
        if each.key.startswith(prefix)
    ]
    output.write(_some(rows, prefix), _COLUMNS, layout, by_importance=False)


def _loaded(place: options.ConfOptions) -> tuple[Conf, list[origins.Origin]]:
    """The conf, and where each value comes from."""
    sources = given(place.file, place.overrides)
    loaded = load(*sources)
    return loaded, list(origins.origins(loaded, *sources))


def _checked(place: options.ConfOptions) -> str:
    from quotaflow.pipelines.results import row_alerts  # noqa: PLC0415  imports pyarrow

    loaded, shown = _loaded(place)
    row_alerts.check(loaded.alerts)
    return _valid(sum(each.source != origins.DEFAULT for each in shown))


def _describe(prefix: str, layout: Layout) -> None:
    from quotaflow.pipelines.reference import conf_keys  # noqa: PLC0415  slow to import

    rows = [
        {"key": key.path, "default": key.default, "meaning": " ".join(key.description.split())}
        for key in conf_keys.each_key()
        if key.path.startswith(prefix)
    ]
    if layout == Layout():
        output.lines(_key_lines(_some(rows, prefix)))
    else:
        output.write(_some(rows, prefix), _KEY_COLUMNS, layout, by_importance=False)


def _key_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    width = grid.screen_width() or _PIPE_WIDTH
    for row in rows:
        yield f"{grid.bold(row['key'])}  {row['default']}"
        indent = "    "
        yield from textwrap.wrap(
            row["meaning"], width, initial_indent=indent, subsequent_indent=indent
        )


def _some(rows: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    if not rows:
        raise ConfigError(f"no key of conf begins with {prefix}: `quotaflow conf show` lists all")
    return rows


def _valid(given: int) -> str:
    """What check prints of a conf with this number of given values."""
    return (
        f"conf is valid: {counted(given, 'value is', 'values are')} given, the others are defaults"
    )
