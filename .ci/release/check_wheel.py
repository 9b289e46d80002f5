"""Install a wheel into a bare environment of each Python, by hashes alone, and use it.

    python .ci/release/check_wheel.py dist/quotaflow-0.1.0-py3-none-any.whl python3.11 python3.12

Every package comes from requirements.txt with its sum, and nothing else is installed. Each extra is
resolved by the wheel's own metadata: what it asks for must be there already.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

LOCK = Path(__file__).parents[2] / "requirements.txt"
EXTRAS = ("local", "connect", "demo", "report", "metrics", "otlp", "quality", "keystores", "mcp")
_IMPORTS = "import quotaflow.udfs.otlp.decode, quotaflow.pipelines.warehouse.local_database"
_USES = (
    ("--version",),
    ("--help",),
    ("jobs",),
    ("tables",),
    ("ddl", "--set", "warehouse.catalog_schema=main.quotaflow"),
    ("metrics",),
)


def check(wheel: Path, python: str, lock: Path = LOCK) -> str:
    """Install and use the wheel; returns the version of this Python.

    Raises CalledProcessError with what was printed.
    """
    with tempfile.TemporaryDirectory(prefix="bare-") as folder:
        _run(python, "-m", "venv", folder)
        bare = Path(folder, "bin", "python")
        pip = (bare, "-m", "pip", "--disable-pip-version-check", "--no-input")
        _run(*pip, "install", "-q", "--no-compile", "--require-hashes", "-r", lock)
        _run(*pip, "install", "-q", "--no-deps", wheel)
        _run(*pip, "check")
        wanting = _run(*pip, "install", "--dry-run", "--no-index", f"{wheel}[{','.join(EXTRAS)}]")
        assert "Would install" not in wanting.replace(f"quotaflow-{_version(wheel)}", ""), wanting
        _run(bare, "-c", _IMPORTS)
        for words in _USES:
            _run(Path(folder, "bin", "quotaflow"), *words, cwd=folder)
        printed = _run(Path(folder, "bin", "quotaflow"), "--version", cwd=folder)
        assert printed.strip() == f"quotaflow {_version(wheel)}", printed
        return _run(bare, "-c", "import platform; print(platform.python_version())").strip()


def _version(wheel: Path) -> str:
    with ZipFile(wheel) as content:
        (name,) = (n for n in content.namelist() if n.endswith(".dist-info/METADATA"))
        lines = content.read(name).decode().splitlines()
    return next(line for line in lines if line.startswith("Version: ")).removeprefix("Version: ")


def _run(*command: str | Path, cwd: str | None = None) -> str:
    # Nothing of this checkout, and no home: HOME is where the command runs.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"HOME": cwd} if cwd else {}
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=environ)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


def main(arguments: Sequence[str]) -> None:
    """The wheel, and the interpreters to check it with."""
    wheel, *pythons = arguments
    for python in pythons:
        print(f"{python}: {check(Path(wheel).resolve(), python)} works")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
