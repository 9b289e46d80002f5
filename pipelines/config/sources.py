"""What conf is given by: options of a command, the environment, and files at their usual places."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.runtime import expanded
from quotaflow.pipelines.errors import ConfigError

FILE = "QUOTAFLOW_CONF"
HOME = "QUOTAFLOW_HOME"
BETWEEN = "__"
PREFIX = f"QUOTAFLOW{BETWEEN}"
_SECTIONS = frozenset(Conf.model_fields)


class Given(NamedTuple):
    """The arguments of `load`: a file (the packaged one if none), pairs of --set, and variables of
    the environment by their names.
    """

    file: Path | None
    overrides: list[str] | None
    variables: dict[str, str]


def given(file: Path | None = None, overrides: list[str] | None = None) -> Given:
    """The two options of a command, with what the environment of this process adds to them.

    Without --conf the file is that of QUOTAFLOW_CONF, or `user_file`. Raises ConfigError if
    QUOTAFLOW_CONF names no file, or if a variable has nearly the name of one that is read.
    """
    return Given(file or _named_file(os.environ) or user_file(), overrides, _variables(os.environ))


def user_file() -> Path | None:
    """This user's conf, $XDG_CONFIG_HOME/quotaflow/conf.yaml; None if there is none.

    By the XDG Base Directory Specification a relative folder is ignored, as an empty one is:
    ~/.config takes its place.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        root = Path(folder) if os.path.isabs(folder) else Path("~/.config").expanduser()
    except RuntimeError:
        return None  # a user without a home has no file there
    file = root / "quotaflow" / "conf.yaml"
    # A link to a file that is gone is an error, and not a reason for another conf.
    return file if os.path.lexists(file) else None


def names(environ: Mapping[str, str]) -> list[str]:
    """The variables that give conf, or nearly have the name of one that does."""
    return [
        name
        for name in environ
        if name == FILE or (BETWEEN in name and name.upper().startswith("QUOTAFLOW_"))
    ]


def _named_file(environ: Mapping[str, str]) -> Path | None:
    text = environ.get(FILE)
    if not text:
        return None
    file = expanded(text)
    if not file.exists():
        raise ConfigError(f"{FILE}: there is no file {file}: name an existing conf, or unset it")
    return file


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of conf. An empty one counts as not set."""
    for name in environ:
        if right := _meant(name):
            raise ConfigError(f"{name}: no such variable is read: write {right}")
    return {name: text for name, text in environ.items() if name.startswith(PREFIX) and text}


def _meant(name: str) -> str | None:
    """The right name, if this one is nearly that of a variable for conf."""
    for right in (FILE, HOME):
        if name == right.replace("_", BETWEEN):
            return right
    if name.upper().startswith(PREFIX) and not name.startswith(PREFIX):
        return name.upper()
    match = re.fullmatch(rf"QUOTAFLOW_([A-Z]+(?:_[A-Z]+)*){BETWEEN}(.+)", name)
    is_section = match is not None and match[1].lower() in _SECTIONS
    return f"{PREFIX}{match[1]}{BETWEEN}{match[2]}" if match and is_section else None
