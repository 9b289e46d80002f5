"""Draw an environment for the tests by the hash of what is tested: one line for a shell.

    python3 .ci/draw.py HASH FOLDER

The same hash draws the same on each machine, in FOLDER if it draws a new home.
"""

import hashlib
import locale
import os
import shlex
import sys

VALUES = {
    "TZ": (
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/St_Johns",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Kiritimati",
    ),
    "LC_ALL": ("C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"),
    "COLUMNS": ("80", "200"),
    "HOME": ("", "home of Jörg"),
    "umask": ("022", "077"),
}
"""An empty home is the ordinary one."""
_FALLBACK = "C.UTF-8"


def draw(tree: str) -> dict[str, str]:
    """One value of each, and a seed for the order of Python's sets."""
    numbers = {
        name: int(hashlib.sha256(f"{tree} {name}".encode()).hexdigest()[:8], 16)
        for name in (*VALUES, "PYTHONHASHSEED")
    }
    drawn = {name: values[numbers[name] % len(values)] for name, values in VALUES.items()}
    return drawn | {"PYTHONHASHSEED": str(numbers["PYTHONHASHSEED"])}


def line(drawn: dict[str, str], folder: str) -> str:
    """The shell's commands for what was drawn. A locale that is not installed is replaced."""
    variables = {name: text for name, text in drawn.items() if text and name != "umask"}
    note = ""
    if not _is_installed(drawn["LC_ALL"]):
        variables["LC_ALL"], note = _FALLBACK, f" # {drawn['LC_ALL']} is not installed"
    if "HOME" in variables:
        variables["HOME"] = os.path.join(folder, variables["HOME"])
    words = (f"{name}={shlex.quote(text)}" for name, text in variables.items())
    return f"umask {drawn['umask']}; export {' '.join(words)}{note}"


def _is_installed(name: str) -> bool:
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    return True


if __name__ == "__main__":
    sys.stdout.buffer.write(f"{line(draw(sys.argv[1]), sys.argv[2])}\n".encode())
