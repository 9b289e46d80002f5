"""The command completion: a script that lets a shell complete commands, options and names."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from quotaflow.pipelines.terminal import output


class Shell(StrEnum):
    """A shell that completes."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script with which a shell completes commands, options and names of tables.

    The script asks quotaflow at each Tab. For bash, put the line `source <(quotaflow completion
    bash)` into ~/.bashrc. For zsh, write it to a file _quotaflow in a folder of $fpath. For fish,
    write it to ~/.config/fish/completions/quotaflow.fish.

    Example: quotaflow completion bash > ~/.local/share/bash-completion/completions/quotaflow
    """
    script = get_completion_script(
        prog_name="quotaflow", complete_var="_QUOTAFLOW_COMPLETE", shell=shell
    )
    output.lines([script])
