"""Commands and what may go wrong around them: which goes on, which ends with one line.

`python -m tests.pipelines.commands.faults_of_commands` prints the table of docs/faults.md.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "status": ("status",),
    "why": ("why", "dave"),
    "sql": ("sql", "SELECT count(*) FROM requests"),
    "tables": ("tables",),
    "report": ("report", "--out", "-"),
    "plan": ("plan",),
    "conf check": ("conf", "check"),
    "upkeep": ("upkeep", "requests"),
}


def _mounted(mounts: str) -> str:
    return f'exec unshare -rm bash -c \'{mounts} && exec "$@"\' - "$@"'


def _shifted(days: int) -> str:
    return f'exec "$1" -m tests.other_clock {days} "${{@:3}}"'


AS_EVER, ONE_LINE, ENDED = "goes on", "one line", "ends"
FAULTS = {
    "at most 24 open files": 'ulimit -n 24; exec "$@"',
    "no file can grow": 'ulimit -f 0; exec "$@"',
    "full TMPDIR": _mounted("mount -t tmpfs -o size=4k none $TMPDIR"),
    "read-only tables": _mounted(
        "mount --bind $TABLES $TABLES && mount -o remount,ro,bind $TABLES"
    ),
    "no /dev/shm": _mounted("mount -t tmpfs -o ro none /dev/shm"),
    "at most 1 GB of address space": 'ulimit -v 1000000; exec "$@"',
    "closed output": 'exec "$@" >&-',
    "full output": 'exec "$@" >/dev/full',
    "clock a year ahead": _shifted(365),
    "clock a year back": _shifted(-365),
    "two runs of the command at once": (
        '"$@" & first=$!; "$@"; second=$?; wait $first; exit $(($? | second))'
    ),
    **{
        f"Ctrl-C after {s} s": f'exec timeout --preserve-status -s INT {s} "$@"'
        for s in (0.3, 0.6, 1, 2)
    },
}
"""Each a line of bash, in which `$@` is the command."""
EXPECTED: dict[str, dict[str, str]] = {
    "no file can grow": {"": ONE_LINE, "tables": AS_EVER, "conf check": AS_EVER},
    "read-only tables": {"upkeep": ONE_LINE},
    "at most 1 GB of address space": {"": ONE_LINE, "conf check": AS_EVER},
    "full output": {"": ONE_LINE},
    "two runs of the command at once": {"upkeep": ONE_LINE},
}
"""The outcomes other than `AS_EVER`, by fault and command; under "" those of all commands."""
NATIVE = re.compile(r"<unknown>|Traceback|\bat \./|RUST_|core dumped")
_TIMEOUT_S = 240
ENDED_CODE = 130


def expected(fault: str, command: str) -> str:
    """The outcome that the table has."""
    if fault.startswith("Ctrl-C"):
        return ENDED
    of_fault = EXPECTED.get(fault, {})
    return of_fault.get(command, of_fault.get("", AS_EVER))


def outcome(fault: str, command: str, tables: Path) -> str:
    """What became of a command over these tables; other words if it broke."""
    line = [sys.executable, "-m", "quotaflow.pipelines", *COMMANDS[command]]
    (tables.parent / "tmp").mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tables.parent),
        "TMPDIR": str(tables.parent / "tmp"),
        "TABLES": str(tables),
        "QUOTAFLOW__WAREHOUSE__PATH": str(tables),
    }
    process = subprocess.run(
        ["bash", "-c", FAULTS.get(fault, 'exec "$@"'), "-", *line],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=_TIMEOUT_S,
    )
    errors = [text for text in process.stderr.splitlines() if text.startswith("error: ")]
    # Before our first line runs, only Python can say how it ends, and with which code.
    is_python = "KeyboardInterrupt" in process.stderr and "quotaflow" not in process.stderr
    if is_python and process.returncode in {1, ENDED_CODE}:
        return ENDED
    if NATIVE.search(process.stdout + process.stderr):
        return process.stderr[-2_000:]
    if process.returncode == ENDED_CODE and not errors:
        return ENDED
    if process.returncode in {1, 2} and len(errors) == 1:
        return ONE_LINE
    if process.returncode in {0, 1, 3} and not errors:
        return AS_EVER
    return f"exit code {process.returncode}: {process.stderr[-2_000:]}"


def table() -> str:
    """Commands and faults as Markdown."""
    shown = [fault for fault in FAULTS if not fault.startswith("Ctrl-C")]
    rows = [
        ["", *COMMANDS],
        ["---"] * (len(COMMANDS) + 1),
        *([fault, *(expected(fault, command) for command in COMMANDS)] for fault in shown),
        ["Ctrl-C at any time", *([ENDED] * len(COMMANDS))],
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(table())
