"""Runs every benchmark, one after another, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = ("decode", "parse", "results", "month", "catalog", "load", "observe")


def main() -> int:
    """Exit code 1 when a benchmark could not be run; its figures are never judged here."""
    failed = []
    for name in BENCHMARKS:
        print(f"\n{name}", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *sys.argv[1:]]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"could not be run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
