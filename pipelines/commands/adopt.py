"""The command adopt: takes over configs that nobody would give back."""

from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options, plan
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.terminal import output, values
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quotaflow.pipelines.feedback.adopt_run import Adoption

From = Annotated[
    str | None,
    typer.Option("--from", metavar="DEPLOYMENT", help="Also the leases of this deployment."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Take over; without it, it is only shown.")]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("adopt")(adopt)


def adopt(
    from_deployment: From = None,
    *,
    yes: Yes = False,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Take over configs that this deployment does not know as its own, so that they are restored.

    These are configs that an earlier release wrote without a signature, leases in the topic that a
    lost warehouse left, rows of config_changes without a lease, and, with --from, the leases of
    another deployment. Read each line before --yes: from then on `restore` sets the value at the
    right. Nothing is written to configs. Leases in the name of this deployment that do not verify
    are removed from the topic.

    Exit code 3: something waits for --yes. The login needs what `apply` needs.

    Example: quotaflow adopt

    Example: quotaflow adopt --from old-laptop --yes
    """
    settings = options.conf_of_tables(conf, overrides)
    from quotaflow.pipelines.feedback import adopt_run  # noqa: PLC0415  imports pyarrow

    if yes:
        adoption = adopt_run.adopt(settings, output.note, from_deployment)
    else:
        adoption = adopt_run.preview(settings, from_deployment)
    output.lines(_lines(adoption))
    for why in adoption.distrusted:
        output.note(values.visible(f"refused: {why}"))
    if adoption.configs and not yes:
        output.note("Nothing was written: --yes takes it over.")
        raise typer.Exit(plan.CHANGES_WAITING)
    if adoption.distrusted and not yes:
        rows = counted(len(adoption.distrusted), "row or lease", "rows and leases")
        raise FeedbackError(f"not verified: {rows}; --yes removes the leases")


def _lines(adoption: "Adoption") -> "Iterator[str]":
    if not adoption.configs:
        yield "nothing to take over"
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
