"""A browser for the tests that look at pages: one of PATH, or Chromium by apt if nobody is asked.

python tests/chromium.py install     # before the tests
python tests/chromium.py left-out    # after them: how many had no browser
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_APT_GET = ("apt-get", "-qq", "--yes", "--no-install-recommends")
_NEEDS_ONE = "import Browser"
"""What a file of such tests has; to collect the others takes longer."""


def command() -> str | None:
    """The path of the browser."""
    return next(filter(None, map(shutil.which, COMMANDS)), None)


def missing() -> str:
    """What to do without one."""
    by_apt = f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install chromium"
    return f"no browser on PATH (one of {', '.join(COMMANDS)}): {by_apt}"


def install() -> None:
    """Install Chromium unless there is a browser, as root or by sudo without a password."""
    if command():
        return
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (as_root and _failure([*as_root, "true"])):
        return
    _print("no browser on PATH for the tests of pages: installing chromium by apt-get")
    for words in (["update"], ["install", "chromium"]):
        if failure := _failure([*as_root, *_APT_GET, *words]):
            _print(f"apt-get {' '.join(words)} failed: {failure}")
            return


def left_out() -> None:
    """Print how many tests of `make test` are skipped, if there is no browser."""
    if command():
        return
    texts = ((file, file.read_text(encoding="utf-8")) for file in Path("tests").rglob("test_*.py"))
    files = [file for file, text in texts if _NEEDS_ONE in text]
    collect = ["-m", "pytest", "--collect-only", "-qq", "-m", "browser and not faults", *files]
    done = subprocess.run([sys.executable, *collect], stdout=subprocess.PIPE, text=True, check=True)
    count = sum(map(int, re.findall(r"(?m)^\S+: (\d+)$", done.stdout)))
    _print(f"{count} tests of pages were skipped: {missing()}")


def _failure(words: list[str]) -> str | None:
    """The last line that a command printed, or its error, if it failed. It can ask nothing."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            umask=0o022,  # other users read what is installed
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"install": install, "left-out": left_out}[sys.argv[1]]()
