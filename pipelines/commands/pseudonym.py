"""The command pseudonym: under which name a client stands in tables that hide it."""

from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("pseudonym")(pseudonym)


def pseudonym(
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="One of privacy.columns: client_id.")
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the client is really called.")],
    *,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Print what stands in tables for a client id or an address that privacy hides.

    Needs the key of conf's privacy section; there is no way back from a pseudonym to a name.

    Example: quotaflow pseudonym client_id orders-7
    """
    privacy = options.conf(conf, overrides).privacy
    hidden = privacy.pseudonyms()
    if hidden is None:
        raise ConfigError("conf hides nothing: privacy.key names no key")
    if not privacy.hides(column):
        raise ConfigError(
            f"{column} is not hidden: privacy.columns are {', '.join(privacy.columns)}"
        )
    output.lines([hidden.pseudonym(column, text)])
