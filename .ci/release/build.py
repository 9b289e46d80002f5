"""Build all files of a release into a folder, and list their sums.

    python .ci/release/build.py dist .venv/release/bin/cyclonedx-py

The wheel and the jar have the same bytes from the same commit. The bill of materials is of an
environment that has nothing but the wheel and what requirements.txt lists.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import receiver_jar
import sbom

from quotaflow.pipelines.spark.jars import kafka_jars

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.txt"
FURTHER_LOCKS = (ROOT / "requirements-iam.txt", ROOT / "requirements-kerberos.txt")
SITE = ROOT / "build" / "docs"
"""What `make docs` made."""

JAR_SETS = ("spark-jars",)
SUMS = "SHA256SUMS"


def main(folder: Path, cyclonedx: Path) -> None:
    """Build everything. Raises SystemExit for a licence that is not in the list."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheel = packages(folder)
    receiver_jar.build(folder, kafka_jars(print))
    for lock in (LOCK, *FURTHER_LOCKS):
        shutil.copy(lock, folder / lock.name)
    stem = f"quotaflow-{project()['version']}"
    shutil.make_archive(str(folder / f"{stem}-docs"), "gztar", SITE.parent, SITE.name)
    bom = bill(wheel, cyclonedx)
    (folder / f"{stem}.cdx.json").write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    licences = sbom.licences(bom)
    lines = "".join(f"{name}: {licences[name]}\n" for name in sorted(licences))
    (folder / f"{stem}-licences.txt").write_text(lines, encoding="utf-8")
    if unread := sbom.not_permitted(licences):
        raise SystemExit(f"look at these licences first: {unread}")
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    listed = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / SUMS).write_text("".join(listed), encoding="utf-8")


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)["project"])


def bill(wheel: Path, cyclonedx: Path) -> dict[str, Any]:
    """The bill of materials of a wheel: packages with licences and sums, and Spark's jars."""
    with tempfile.TemporaryDirectory(prefix="bare-") as bare:
        # Without pip, which is no part of quotaflow.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        pip = (sys.executable, "-m", "pip", "--python", bare, "install", "-q", "--no-compile")
        subprocess.run([*pip, "--require-hashes", "-r", LOCK], check=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        command = [cyclonedx, "environment", "--output-reproducible", "--pyproject"]
        printed = subprocess.run(
            [*command, ROOT / "pyproject.toml", bare], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    made: dict[str, Any] = json.loads(printed)
    hashes = sbom.pinned(LOCK.read_text(encoding="utf-8"))
    jars = [jar for name in JAR_SETS for jar in sbom.jar_components(name)]
    made["components"] = [*sbom.with_hashes(made["components"], hashes), *jars]
    return made


def packages(folder: Path) -> Path:
    """Build the sdist, and the wheel of it; returns the wheel's path."""
    committed_at = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": committed_at})
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
