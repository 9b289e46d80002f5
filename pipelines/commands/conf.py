"""The command conf: checks and shows conf, and prints its schema for editors."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.config import given, load, origins, schema
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

_COLUMNS = ["key", "value", "source"]


class Action(StrEnum):
    """What `conf` does."""

    CHECK = "check"
    SHOW = "show"
    SCHEMA = "schema"


def conf(
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="check, show or schema.")],
    prefix: Annotated[
        str | None,
        typer.Argument(metavar="[PREFIX]", help="With show: only keys that begin so: kafka."),
    ] = None,
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Check conf, show where each value comes from, or print its JSON Schema.

    The action check reads no cluster and no secret, and names every problem. Exit code 2: there is
    one. The action show prints each value with what gives it: --set, a variable of the environment,
    a line of the file, or the default. Secrets stay references. The action schema is for editors of
    YAML. Write its output to a file beside conf.yaml, and begin conf.yaml with the line
    `# yaml-language-server: $schema=quotaflow.schema.json`.

    Example: quotaflow conf check --conf setup/conf.yaml

    Example: quotaflow conf show kafka --conf setup/conf.yaml

    Example: quotaflow conf schema > setup/quotaflow.schema.json
    """
    if prefix is not None and action is not Action.SHOW:
        raise ConfigError(f"{prefix}: only `conf show` takes the beginning of keys")
    if action is Action.SCHEMA:
        output.lines([json.dumps(schema.schema(), indent=2)])
        return
    sources = given(conf.file, conf.overrides)
    shown = list(origins.origins(load(*sources), *sources))
    if action is Action.CHECK:
        from quotaflow.pipelines.results import row_alerts  # noqa: PLC0415  imports pyarrow

        row_alerts.check(load(*sources).alerts)
        output.lines([_valid(sum(each.source != origins.DEFAULT for each in shown))])
        return
    rows: list[dict[str, Any]] = [
        {"key": each.key, "value": values.plain(each.value), "source": each.source}
        for each in shown
        if each.key.startswith(prefix or "")
    ]
    if not rows:
        raise ConfigError(f"no key of conf begins with {prefix}: `quotaflow conf show` lists all")
    output.write(rows, _COLUMNS, layout, by_importance=False)


def _valid(given: int) -> str:
    """What check prints of a conf with this number of given values."""
    return (
        f"conf is valid: {counted(given, 'value is', 'values are')} given, the others are defaults"
    )
