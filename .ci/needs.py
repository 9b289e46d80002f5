"""End with one line if this machine lacks what `make` needs, before anything is downloaded.

    python3 .ci/needs.py

Only the standard library is there yet, and an old Python reads this file too.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

_OLDEST = (3, 11)


def main() -> None:
    """End with the line for the first thing that is missing: Python, venv, a JDK."""
    here = ".".join(map(str, sys.version_info[:2]))
    if sys.version_info < _OLDEST:
        needed = "error: quotaflow needs Python 3.11 or later, and"
        sys.exit(f"{needed} {sys.executable} is {here}: set PYTHON=")
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        sys.exit(f"error: {sys.executable} has no venv: apt-get install python{here}-venv")
    # As the product finds it. The package is not installed yet.
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    from quotaflow.pipelines.errors import MissingToolError  # noqa: PLC0415  not for an old Python
    from quotaflow.pipelines.spark.java import javac  # noqa: PLC0415

    try:
        javac()
    except MissingToolError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
