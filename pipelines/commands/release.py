"""The command release: a person allows plans to change a config that another login set."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options, plan
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.runs import context, release_run
from quotaflow.pipelines.terminal import output, values

if TYPE_CHECKING:
    from quotaflow.pipelines.feedback.runs.release_run import Release

Entity = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY_TYPE/NAME|halt",
        help="As a plan prints it: user/mallory; user alone: the default of all users.",
    ),
]
Key = Annotated[
    str | None, typer.Argument(metavar="[KEY]", help="The config, as a plan prints it.")
]
ClientId = Annotated[
    str | None,
    typer.Option(
        "--client-id", metavar="ID", help="The client id, of a quota of user and client id."
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Record the release; without --yes, it is only shown.")
]


def release(
    entity: Entity,
    key: Key = None,
    client_id: ClientId = None,
    *,
    yes: Yes = False,
    conf: options.ConfOptions,
) -> None:
    """Allow plans to change a config that another login set last, or to go on after a halt.

    A plan never changes such a config by itself: it prints who set it and when, and this command.
    The release is a row of config_changes, with who made it. Nothing is written to the cluster. A
    later alteration by others ends the release. With halt, plans may write again although the
    cluster was worse after the last run. Exit code 3: --yes would release it. Needs no JVM
    where the tables are in a folder.

    Example: quotaflow release user/mallory producer_byte_rate --yes
    """
    opened = context.from_conf(conf.of_tables())
    if entity == "halt":
        if not yes:
            output.note("Nothing was recorded: --yes releases the halt.")
            raise typer.Exit(plan.CHANGES_WAITING)
        cluster_id = release_run.release_halt(opened, output.note)
        output.lines([f"plans may write to cluster {cluster_id} again"])
        return
    if key is None:
        raise ConfigError("give the KEY too, as the plan prints it")
    request = release_run.Request.parse(entity, key, client_id)
    if yes:
        output.lines([_line(release_run.release(opened, request, output.note), is_done=True)])
        return
    shown = release_run.preview(opened, request, datetime.now(UTC))
    output.lines([_line(shown, is_done=False)])
    if shown.reason is not None:
        output.note("Nothing was recorded: --yes releases it.")
        raise typer.Exit(plan.CHANGES_WAITING)


def _line(release: "Release", *, is_done: bool) -> str:
    entity, key = release.key
    value = "not set" if release.value is None else release.value
    if release.reason is None:
        return values.visible(f"{entity}: {key} ({value}): plans may change it already")
    state = "plans may change it now" if is_done else release.reason
    return values.visible(f"{entity}: {key} ({value}): {state}")
