"""The two commands of the README in an empty Debian, with what the README lists and no more."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ..release_tools import ROOT
from . import debian_root

_LONGEST_S = 5_400
pytestmark = [
    pytest.mark.more,
    pytest.mark.timeout(_LONGEST_S + 600),
    pytest.mark.usefixtures("root"),
]
SCRIPT = """\
set -eu
# What the kernel of a machine has and a folder lacks.
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
apt-get update -qq
{install} --yes -qq --no-install-recommends
git clone --quiet quotaflow.git quotaflow
cd quotaflow
for target in demo test; do
    echo "make $target"
    code=0
    make $target >../log 2>&1 || code=$?
    cat ../log
    # Only the end of what a failed script printed is shown.
    [ $code = 0 ] || {{ grep -E "^(FAILED|ERROR|make|E  )" ../log; exit $code; }}
done
"""


def test_demo_and_test_work_with_what_the_readme_lists(tmp_path: Path) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    install = re.search(r"Debian 12: `(apt-get install [^`]+)`", text)
    assert install is not None
    repository = tmp_path / "context" / "quotaflow.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, repository], check=True)
    folder = tmp_path / "debian"
    folder.mkdir()
    debian_root.make(folder)
    script = SCRIPT.format(install=install[1])
    printed = debian_root.build(folder, script, repository.parent, _LONGEST_S)
    shutil.rmtree(folder)
    _, of_demo, of_test = re.split(r"(?m)^make (?:demo|test)$", printed)
    assert "quotaflow why" in of_demo
    assert "installing chromium by apt-get" in of_test
    assert "tests of pages were skipped" not in of_test
