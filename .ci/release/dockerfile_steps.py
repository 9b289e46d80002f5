"""The steps of a Dockerfile as a shell script, for a machine without Docker.

    python .ci/release/dockerfile_steps.py > steps.sh

The script runs as root where the base image would be unpacked, in a folder with the files that COPY
names. It knows what our Dockerfile has: RUN, COPY, ENV, WORKDIR, USER; the rest says nothing of
files.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parents[2] / "Dockerfile"
_SAYS_NO_STEP = {"FROM", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD"}


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction with its argument: comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, argument = line.partition(" ")
        yield name, " ".join(argument.split())


def script(text: str) -> Iterator[str]:
    """The lines of the script."""
    yield "set -eu"
    user = "root"
    for name, argument in instructions(text):
        match name:
            case "RUN" if user == "root":
                yield f"( {argument} )"
            case "RUN":
                yield f"su --preserve-environment --shell /bin/sh -c {shlex.quote(argument)} {user}"
            case "COPY":
                *sources, target = argument.split()
                yield f"mkdir -p {target} && cp -r {' '.join(sources)} {target}"
            case "ENV":
                yield f"export {argument}"
            case "WORKDIR":
                yield f"mkdir -p {argument} && cd {argument}"
            case "USER":
                user = argument
            case _ if name not in _SAYS_NO_STEP:
                raise ValueError(f"{name} is an instruction that this script does not know")


if __name__ == "__main__":
    print("\n".join(script(FILE.read_text(encoding="utf-8"))))  # noqa: T201
