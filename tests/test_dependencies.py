"""What quotaflow installs: all of it pinned, none of it unneeded, all of it under a free licence.

Needs no network. `make audit` queries known vulnerabilities; here is how it reads the answer.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .cases import cases

ROOT = Path(__file__).parents[1]
# What makes the environment, before anything is required.
TOOLS = {"pip", "setuptools", "wheel"}
# Weak copyleft is listed by name: used as published, and not part of what we ship.
FREE = r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|DFSG approved"
# Extras that no test of the gate installs: tests marked `more` fetch their packages.
FETCHED = {"iam", "kerberos"}
MPL = {"certifi", "hypothesis", "pathspec"}


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    parts = [line.partition("==") for line in lines]
    assert [name for name, equals, version in parts if not (equals and version)] == []
    return {canonicalize_name(name): version for name, _, version in parts}


def needed() -> dict[str, str]:
    """Everything that an installation with all extras holds, by what packages say they require."""
    names: dict[str, str] = {}
    left: list[tuple[str, tuple[str, ...]]] = [("quotaflow", ())]
    while left:
        name, extras = left.pop()
        for requirement in _requirements(name, extras):
            key = canonicalize_name(requirement.name)
            if key not in names or requirement.extras:
                names[key] = metadata.version(key)
                left.append((key, tuple(requirement.extras)))
    return names


def _requirements(name: str, extras: tuple[str, ...]) -> Iterator[Requirement]:
    for text in _required(name):
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": each}) for each in ("", *extras)):
            yield requirement


def _required(name: str) -> list[str]:
    if name != "quotaflow":
        return metadata.requires(name) or []
    # What is installed here may be of an older tree.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_extras = project["optional-dependencies"]
    extras = of_extras.keys() - FETCHED
    return [*project["dependencies"], *(text for each in extras for text in of_extras[each])]


def test_every_package_is_pinned_to_the_version_that_is_tested() -> None:
    versions = pinned()
    assert {n: v for n, v in needed().items() if versions.get(n) != v} == {}


def test_nothing_is_pinned_that_nothing_needs() -> None:
    optional = {
        canonicalize_name(requirement.name)
        for name in needed()
        for text in _required(name)
        for requirement in [Requirement(text)]
    }
    assert set(pinned()) - needed().keys() - TOOLS - optional == set()


def licences(name: str) -> list[str]:
    headers: Any = metadata.metadata(name)  # a Message, whose type promises less
    classified = [c for c in headers.get_all("Classifier") or [] if c.startswith("License ::")]
    texts = [headers.get("License-Expression"), *classified, (headers.get("License") or "")[:60]]
    return [text for text in texts if text]


def test_every_licence_is_free() -> None:
    declared = {name: licences(name) for name in needed()}
    free = {name: f"{FREE}|MPL|Mozilla" if name in MPL else FREE for name in declared}
    others = {
        name: texts
        for name, texts in declared.items()
        if not any(re.search(free[name], text) for text in texts)
    }
    assert others == {}


@pytest.mark.parametrize("file", sorted((ROOT / "conf").glob("*.sha256")), ids=lambda f: f.name)
def test_every_jar_has_a_whole_sum_and_stands_once(file: Path) -> None:
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256, _ in lines)
    assert len({jar for _, jar in lines}) == len(lines) > 0


def audited(*packages: dict[str, Any]) -> str:
    return "a warning\n" + json.dumps({"dependencies": packages, "fixes": []})


GOOD: dict[str, Any] = {"name": "good_one", "version": "1", "vulns": []}
BAD = GOOD | {"vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SKIPPED = {"name": "good_one", "skip_reason": "not found on PyPI"}


@cases(
    ("output", "code", "line"),
    ("good", audited(GOOD), 0, "1 packages, no known vulnerability"),
    ("vulnerable", audited(BAD), 1, "vulnerable: good_one 1: PYSEC-1, fixed in 2"),
    ("skipped", audited(SKIPPED), 2, "no advisories for 1 of 1: good-one"),
    ("left out", audited(), 2, "no advisories for 1 of 1"),
    ("not reached", "ConnectionError: no such host", 2, "no such host"),
    ("nothing", "", 2, "nothing was printed"),
)
def test_an_audit_says_what_it_knows(output: str, code: int, line: str, tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").write_text("good-one==1\n")
    command = [sys.executable, str(ROOT / ".ci" / "audit.py"), str(tmp_path / "constraints.txt")]
    done = subprocess.run(command, input=output, capture_output=True, text=True, check=False)
    assert (done.returncode, line in done.stdout) == (code, True), done.stdout + done.stderr
