"""The commands that README, docs and bench tell a reader to run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"(?s)^ *```(\w*)\n(.*?)^ *```$", re.M)
_CODE = re.compile(r"`(quotaflow [a-z][^`]*)`")


def in_blocks(page: Path) -> Iterator[str]:
    """Commands to run as they stand, their comments left out."""
    for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in [] if language else re.sub(r"\\\n\s*", "", block).splitlines():
            yield from _each(line.strip().removeprefix("$ ").split("  #")[0])


def in_text(page: Path) -> Iterator[str]:
    """Commands that are named in passing."""
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    for code in _CODE.findall(text):
        yield from _each(re.sub(r"\s+", " ", code))


def _each(line: str) -> Iterator[str]:
    """A line's commands; general options alone, such as --help, are none."""
    for command in map(str.strip, re.split(r"&&|;", line)):
        if re.match(r"quotaflow [a-z]", command):
            yield command


def words(command: str) -> list[str]:
    """The arguments of a command as a shell splits them; `...` marks an omission.

    A redirection is the shell's own.
    """
    split = shlex.split(command)[1:]
    own = split[: split.index(">")] if ">" in split else split
    return [word for word in own if word != "..."]
