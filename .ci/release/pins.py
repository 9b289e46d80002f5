"""Install a wheel into what a Databricks platform has, and use it.

    python .ci/release/pins.py dist/quotaflow-0.1.0-py3-none-any.whl conf/platforms/*.txt

The installation may replace no package of the platform, and all packages must still fit. A job runs
beside Spark of this project, because that of the platforms is on no registry. Their Python, 3.12,
is used where the machine has it, else that of the environment.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
BUNDLE = ROOT / "conf" / "bundle-constraints.txt"
SERVERLESS = "serverless-5"
UV = str(Path(sys.executable).with_name("uv"))
_PAYLOAD, _LINES = GOLDEN / "otlp" / "java-cons-bob.data.bin", GOLDEN / "lines" / "fetch.jsonl"


def check(wheel: Path, platform: Path, folder: Path) -> str:
    """Install and use the wheel; returns how many packages the platform has and what was added.

    Raises CalledProcessError with what was printed.
    """
    python = folder / "bin" / "python"
    _run(UV, "venv", "-q", "--python", interpreter(), folder)
    pip = [UV, "pip"], ["-q", "--python", python]
    names = [line.partition("~")[0] for line in platform.read_text("utf-8").splitlines()]
    packages = [name for name in names if name and not name.startswith("#")]
    _run(*pip[0], "install", *pip[1], "--constraint", platform, *packages)
    before = _versions(python)
    constraints = [platform, *([BUNDLE] if platform.stem == SERVERLESS else [])]
    pinned = [word for file in constraints for word in ("--constraint", file)]
    for extra in ("", "[local]"):
        _run(*pip[0], "install", *pip[1], *pinned, f"{wheel}{extra}")
        _run(*pip[0], "check", *pip[1])
        after = _versions(python)
        replaced = {name: after.get(name) for name in before if after.get(name) != before[name]}
        assert replaced == {}, replaced
        if not extra:
            _read(folder)
    tables = f"warehouse.path={folder / 'tables'}"
    _run(folder / "bin" / "quotaflow", "run", "request_results", "--once", "--set", tables)
    assert (folder / "tables" / "producer_id_rates").exists()
    return f"{len(before)} packages of the platform are as before, {len(after.keys() - before)} new"


@cache
def interpreter() -> str:
    """The Python of the platforms, if the machine has it; else that of the environment."""
    pyenv = Path.home() / ".pyenv" / "versions"
    places = [*map(str, pyenv.glob("3.12.*/bin/python")), shutil.which("python3.12")]
    return next(filter(None, places), sys.executable)


def _read(folder: Path) -> None:
    """Decode a payload and parse lines, without Spark."""
    quotaflow = folder / "bin" / "quotaflow"
    for words in (("decode", _PAYLOAD), ("parse", _LINES)):
        assert _run(quotaflow, *words, "--json").count("\n") > 1


def _versions(python: Path) -> dict[str, str]:
    listed = json.loads(_run(UV, "pip", "list", "--format", "json", "--python", python))
    return {each["name"]: each["version"] for each in listed}


def _run(*command: str | Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


def main(arguments: Sequence[str]) -> None:
    """The wheel, and the lists of platforms."""
    wheel, *platforms = arguments
    for platform in platforms:
        with tempfile.TemporaryDirectory(prefix="platform-") as folder:
            done = check(Path(wheel).resolve(), Path(platform).resolve(), Path(folder))
        print(f"{platform}, {_run(interpreter(), '--version').strip()}: {done}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
