"""Install what a file of constraints pins into this Python's environment, and show how far it is.

    .venv/bin/python .ci/prepare.py constraints.txt

PySpark comes as source: one pip makes its wheel while another installs the rest. On a terminal one
line is drawn again each second; elsewhere there is a line each half minute, and one at the end.
Only the standard library is there yet, so this cannot use `pipelines/terminal/progress.py`.
"""

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

# Of all modules of all packages few are ever imported: compiling them takes half of the time.
_PIP = (sys.executable, "-m", "pip", "install", "--no-compile", "--no-deps")
_PRINTS = ("--progress-bar=raw", "--disable-pip-version-check")
# pip makes a wheel of PySpark's archive: to compress its jars takes half of the installation.
_OF_PYSPARK = ("--no-build-isolation", "--config-settings=--build-option=--compression=stored")
_FILE = re.compile(r"(Downloading|Using cached) \S+\.(?:whl|tar\.gz|zip) \(([\d.]+) (\w+)\)")
_SMALL = {"bytes": 1, "kB": 1_000}
"""Units of sizes of files about whose progress pip prints nothing."""
_BYTES = re.compile(r"Progress (\d+) of \d+")
_THERE = "Requirement already satisfied"
_PHASES = {"Downloading": "fetching", "Building wheel": "building", "Installing": "unpacking"}
_REDRAWN_S, _PRINTED_S = 1.0, 30.0
_LINES_KEPT = 100
_CLEAR = "\r\x1b[K"


class Fetched:
    """What one pip has printed so far: packages, bytes over the network, and what it does now."""

    def __init__(self, name: str) -> None:
        self.name, self.phase = name, "fetching"
        """What is done now; empty when pip has ended."""
        self.packages = 0
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._before = self._of_file = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return self._before + self._of_file

    def read(self, line: str) -> None:
        """Take one line of pip's output."""
        line = line.strip()
        if match := _BYTES.match(line):
            self._of_file = int(match[1])
            return
        self.lines.append(line)
        file = _FILE.match(line)
        if file and file[1] == "Downloading":
            size = float(file[2]) * _SMALL.get(file[3], 0)
            self._before, self._of_file = self.size, round(size)
        self.packages += bool(file or line.startswith(_THERE))
        phases = (phase for begin, phase in _PHASES.items() if line.startswith(begin))
        self.phase = next(phases, self.phase)


def text(pips: Sequence[Fetched], total: int, seconds: float) -> str:
    """How far all are, in a line."""
    packages = sum(each.packages for each in pips)
    megabytes = sum(each.size for each in pips) / 1e6
    phases = ", ".join(f"{each.phase} {each.name}" for each in pips if each.phase)
    return f"{packages} of {total} packages, {megabytes:.0f} MB, {seconds:.0f} s: {phases}"


@contextmanager
def shown(pips: Sequence[Fetched], total: int) -> Iterator[None]:
    """Print the line until the block ends."""
    began, ended = time.monotonic(), threading.Event()
    is_drawn = sys.stdout.isatty()

    def show() -> None:
        while not ended.wait(_REDRAWN_S if is_drawn else _PRINTED_S):
            line = text(pips, total, time.monotonic() - began)
            sys.stdout.write(f"{_CLEAR}{line}" if is_drawn else f"{line}\n")
            sys.stdout.flush()

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        sys.stdout.write(_CLEAR if is_drawn else "")


def run(prints: Fetched, arguments: Sequence[str]) -> int:
    """One pip; returns its exit code. What it printed is shown if it fails."""
    with subprocess.Popen([*_PIP, *_PRINTS, *arguments], stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            prints.read(line)
    prints.phase = ""
    if pip.returncode:
        sys.stderr.write("\n".join(["", *prints.lines, ""]))
    return pip.returncode


def main(constraints: Path) -> int:
    """Install all packages; returns the exit code of the first pip that failed, else 0."""
    began = time.monotonic()
    pinned = constraints.read_text(encoding="utf-8").split()
    source = [each for each in pinned if each.startswith("pyspark==")]
    pips = [Fetched("the others"), *(Fetched("pyspark") for _ in source)]
    given = [sorted({*pinned} - {*source}), *([*_OF_PYSPARK, each] for each in source)]
    with ThreadPoolExecutor(len(pips)) as pool, shown(pips, len(pinned)):
        codes = list(pool.map(run, pips, given))
    if code := next(filter(None, codes), 0):
        return code
    size, seconds = sum(each.size for each in pips) / 1e6, time.monotonic() - began
    sys.stdout.write(f"{len(pinned)} packages, {size:.0f} MB, in {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(130)
