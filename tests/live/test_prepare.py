"""The script that fills the environment, by pip and from the package registry."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..release_tools import ROOT

pytestmark = pytest.mark.more


def test_a_package_that_is_not_there_ends_it_with_what_pip_printed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, "pip"], check=True)
    for pinned, code in (("idna==3.10", 0), ("idna==0.0.1", 1)):
        (tmp_path / "constraints.txt").write_text(pinned)
        done = subprocess.run(
            [python, ROOT / ".ci/prepare.py", tmp_path / "constraints.txt"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert ("No matching distribution" in done.stderr) is (code == 1)
        assert done.stdout.startswith("1 packages, ") is (code == 0)
