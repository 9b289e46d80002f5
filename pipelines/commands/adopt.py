"""The command adopt: takes over configs that nobody would restore."""

from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options, plan
from quotaflow.pipelines.errors import ConfigError, FeedbackError
from quotaflow.pipelines.feedback.runs import adopt_run, context, release_run
from quotaflow.pipelines.terminal import output, values
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quotaflow.pipelines.feedback.runs.adopt_run import Adoption, LeftLease

Entity = Annotated[
    str | None,
    typer.Argument(metavar="[ENTITY_TYPE/NAME]", help="This config alone: user/mallory."),
]
Key = Annotated[str | None, typer.Argument(metavar="[KEY]", help="Its key, as it is printed.")]
ClientId = Annotated[
    str | None,
    typer.Option(
        "--client-id", metavar="ID", help="The client id, of a quota of user and client id."
    ),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="DEPLOYMENT", help="Also leases of this other deployment."),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Take the configs over; without --yes, they are only shown.")
]


def adopt(
    entity: Entity = None,
    key: Key = None,
    from_deployment: From = None,
    client_id: ClientId = None,
    *,
    yes: Yes = False,
    conf: options.ConfOptions,
) -> None:
    """Take over configs that this deployment does not know as its own, so that they are restored.

    These are leases in the topic that a lost warehouse left, rows of config_changes without a
    lease or of another deployment, and, with --from, the leases of another deployment. Read each
    line before --yes: it ends with the value that `restore` sets from then on. Nothing is written
    to configs.

    A lease that no key verifies is taken over only if you name its config, because anyone who may
    write the topic can have written it. Until then it stays, and the command that restores its
    value by hand is printed. --yes removes it once its config has another value.

    Exit code 3: something waits for --yes. The login needs what `apply` needs.

    Example: quotaflow adopt

    Example: quotaflow adopt --from old-laptop --yes

    Example: quotaflow adopt user/mallory producer_byte_rate --yes
    """
    opened = context.from_conf(conf.of_tables())
    if (entity is None) != (key is None):
        raise ConfigError("give the KEY too, as it is printed")
    named = None if not entity or not key else release_run.Request.parse(entity, key, client_id)
    if yes:
        adoption = adopt_run.adopt(opened, output.note, from_deployment, named)
    else:
        adoption = adopt_run.preview(opened, from_deployment, named)
    _print(adoption, yes=yes)


def _print(adoption: "Adoption", *, yes: bool) -> None:
    """Print what was, or would be, taken over. Raises typer.Exit if something waits for --yes."""
    output.lines(_lines(adoption))
    for why in adoption.distrusted:
        output.note(values.visible(f"refused: {why}"))
    for each in adoption.left:
        output.note(values.visible(_left(each)))
    if (adoption.configs or adoption.over) and not yes:
        output.note(
            "Nothing was written: --yes takes over what is listed, and removes the leases that are "
            "over."
        )
        raise typer.Exit(plan.CHANGES_WAITING)
    if adoption.left:
        leases = counted(len(adoption.left), "lease")
        raise FeedbackError(f"not verified, and not removed: {leases} in the topic")


def _left(lease: "LeftLease") -> str:
    entity, key = lease.key
    value = "not set" if lease.value is None else lease.value
    by_hand = "" if lease.command is None else f"; by hand: {lease.command}"
    return f"left: {entity}: {key} ({value}): {lease.why}{by_hand}"


def _lines(adoption: "Adoption") -> "Iterator[str]":
    if not adoption.configs and not adoption.over:
        yield "nothing to take over"
    for entity, key in adoption.over:
        yield values.visible(f"{entity}: {key}: its lease is over, because it has another value")
    for each in adoption.configs:
        entity, key = each.key
        value, prior = (
            "not set" if text is None else text
            for text in (each.owned.value, each.owned.prior_value)
        )
        ends = (
            "never"
            if each.owned.expires_at is None
            else f"{each.owned.expires_at:%Y-%m-%d %H:%M} UTC"
        )
        yield values.visible(
            f"{entity}: {key}: {value}, restored to {prior} after {ends} ({each.source})"
        )
