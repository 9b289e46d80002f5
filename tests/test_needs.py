"""What `make` checks before it downloads anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .cases import cases
from .release_tools import ROOT, tool

needs = tool("needs", ".ci")


def program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def refusal() -> str | None:
    try:
        needs.main()
    except SystemExit as end:
        return str(end.code)
    return None


@cases(
    ("java", "javac", "expected"),
    ("no Java", None, None, "no java found: install a JDK 17 or 21"),
    ("an old JDK", 'version "11.0.2"', "", "is Java 11, at least 17"),
    ("no compiler", 'version "17.0.1"', None, "no javac beside it (a JRE?)"),
    ("a JDK", 'version "17.0.1"', "", None),
)
def test_java_is_looked_for_as_the_product_does(
    java: str | None,
    javac: str | None,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if java:
        program(tmp_path / "java", f"echo '{java}'")
    if javac is not None:
        program(tmp_path / "javac", javac)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    line = refusal()
    assert (expected is None) is (line is None)
    assert (expected or "") in (line or "")
    assert "\n" not in (line or "")


@pytest.mark.parametrize("absent", ["venv", "ensurepip"])
def test_a_python_without_venv_is_named_with_its_package(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: name != absent or None)
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    assert (refusal() or "").endswith(" has no venv: apt-get install python3.12-venv")


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    assert (refusal() or "").endswith(f"{sys.executable} is 3.10: set PYTHON=")


@pytest.mark.parametrize("target", ["demo", "test", "lint"])
def test_without_a_jdk_no_target_downloads_anything(target: str, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(tmp_path / "nowhere"),
        "HOME": str(tmp_path),
    }
    venv = tmp_path / "venv"
    done = subprocess.run(
        ["make", f"VENV={venv}", f"PYTHON={sys.executable}", target],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    line, of_make = done.stderr.splitlines()
    assert line.startswith(f"error: JAVA_HOME={tmp_path}/nowhere has no bin/java: install a JDK")
    assert of_make.startswith("make: *** ")
    assert not venv.exists()
