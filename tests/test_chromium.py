"""Which browser looks at pages, and what `make test` does without one."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from . import chromium
from .cases import cases

INSTALLS = """echo "$*" >> "$0.log"
[ "$4" = update ] || { echo > "${0%/*}/chromium" && /bin/chmod +x "${0%/*}/chromium"; }"""
FAILS = 'echo "$*" >> "$0.log"; echo warning; echo "E: no package"; exit 100'
NO_PASSWORD = 'shift; [ "$1" = true ] || exec "$@"'
ROOT, USER = 0, 1_000
UPDATE = "-qq --yes --no-install-recommends update"
INSTALL = "-qq --yes --no-install-recommends install chromium"
SAYS = "no browser on PATH for the tests of pages: installing chromium by apt-get"


@dataclass(frozen=True, slots=True)
class Machine:
    """All programs are in one folder."""

    folder: Path
    patch: pytest.MonkeyPatch
    output: pytest.CaptureFixture[str]

    def has(self, user: int, **programs: str) -> None:
        for name, script in programs.items():
            path = self.folder / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            path.chmod(0o755)
        self.patch.setenv("PATH", str(self.folder))
        self.patch.setattr("os.geteuid", lambda: user)

    def called(self) -> list[str]:
        log = self.folder / "apt-get.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def printed(self) -> str:
        return self.output.readouterr().out.rstrip()


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    return Machine(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", chromium.COMMANDS)
def test_a_browser_on_path_is_taken(name: str, machine: Machine) -> None:
    machine.has(ROOT, **{name: "", "apt_get": FAILS})
    chromium.install()
    chromium.left_out()
    assert chromium.command() == str(machine.folder / name)
    assert (machine.called(), machine.printed()) == ([], "")


@cases(
    ("user", "programs", "called", "printed"),
    ("root", ROOT, {"apt_get": INSTALLS}, [UPDATE, INSTALL], SAYS),
    (
        "sudo without a password",
        USER,
        {"apt_get": INSTALLS, "sudo": NO_PASSWORD},
        [UPDATE, INSTALL],
        SAYS,
    ),
    (
        "apt fails",
        ROOT,
        {"apt_get": FAILS},
        [UPDATE],
        f"{SAYS}\napt-get update failed: E: no package",
    ),
    ("sudo asks", USER, {"apt_get": INSTALLS, "sudo": "exit 1"}, [], ""),
    ("no sudo", USER, {"apt_get": INSTALLS}, [], ""),
    ("no apt", ROOT, {}, [], ""),
)
def test_it_is_installed_where_nobody_is_asked(
    user: int, programs: dict[str, str], called: list[str], printed: str, machine: Machine
) -> None:
    machine.has(user, **programs)
    chromium.install()
    assert (machine.called(), machine.printed()) == (called, printed)
    assert (chromium.command() is not None) is (INSTALL in called)


def test_without_one_the_tests_left_out_are_counted(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(USER)
    (machine.folder / "tests").mkdir()
    (machine.folder / "tests" / "test_pages.py").write_text(
        "import pytest  # as if: import Browser\n"
        "@pytest.mark.browser\n@pytest.mark.parametrize('n', range(3))\ndef test_page(n): ...\n"
        "def test_other(): ...\n",
        encoding="utf-8",
    )
    ini = "[pytest]\nmarkers =\n  browser\n  faults\n"
    (machine.folder / "pytest.ini").write_text(ini, encoding="utf-8")
    monkeypatch.chdir(machine.folder)
    chromium.left_out()
    line = machine.printed()
    assert line.startswith("3 tests of pages were skipped: no browser on PATH (one of chromium, ")
    assert line.endswith("): sudo apt-get install chromium")
    machine.has(ROOT)
    assert chromium.missing().endswith("): apt-get install chromium")
