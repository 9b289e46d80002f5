"""Packages and programs that only long tests need, in a folder of this user's cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from quotaflow.pipelines.spark.jars import cache_folder, locked


def from_pypi(*requirements: str) -> Path:
    """A folder with these packages and what they need, for PYTHONPATH."""
    folder = cache_folder() / "tests" / "-".join(each.replace("==", "-") for each in requirements)
    with locked(folder):
        if not folder.exists():
            part = folder.with_name(f".{folder.name}")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
            _run(*command, "--upgrade", "--target", part, *requirements)
            part.rename(folder)
    return folder


def from_debian(*names: str) -> Path:
    """A folder in which these packages of Debian are unpacked; nothing is installed."""
    folder = cache_folder() / "tests" / f"debian-{names[0]}"
    with locked(folder):
        if not folder.exists():
            part = folder.with_name(f".{folder.name}")
            part.mkdir(exist_ok=True)
            _run("apt-get", "update", "--quiet")
            _run("apt-get", "download", "--quiet", *names, cwd=part)
            for package in part.glob("*.deb"):
                _run("dpkg", "--extract", package, part)
            part.rename(folder)
    return folder


def from_go(module: str, *options: str) -> Path:
    """The program of a Go module, which is built once and takes minutes."""
    path, _, version = module.partition("@v")
    name = path.rpartition("/")[2]
    folder = cache_folder() / "tests" / f"{name}-{version}"
    with locked(folder):
        if not (folder / name).exists():
            assert shutil.which("go"), f"this test builds {name}: it needs Go"
            command = ["go", "install", *options, module]
            environment = os.environ | {"GOBIN": str(folder)}
            subprocess.run(command, env=environment, check=True, timeout=1_800)
    return folder / name


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
