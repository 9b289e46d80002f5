"""Checks this machine: Java, Python packages, jars, and free disk space."""

import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from quotaflow.pipelines import extras
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_check, from_error
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.spark import jars, java, session
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse import private_folder

_PACKAGES = {
    "local": ("pyspark", "delta"),
    "report": ("jinja2", "uvicorn"),
    "metrics": ("prometheus_client",),
    "otlp": ("opentelemetry.sdk",),
    "quality": ("great_expectations",),
    "demo": ("confluent_kafka",),
    "keystores": ("cryptography",),
    "kerberos": ("gssapi",),
    "iam": ("botocore",),
}
_NO_ROOM = 0.02


def findings(conf: Conf) -> Iterator[Finding]:
    """Whether jobs can run here, and whether disks have room."""
    owner = session.owner()
    if owner is None:
        yield from_check("JDK", lambda: f"{java.java()}, version {java.OLDEST} or newer")
        yield _jars()
    else:
        yield Finding("Spark", OK, owner)
    yield _pyspark("connect" if owner else "local")
    yield _extras()
    for name, share in health.free_shares(conf).items():
        yield _room(name, share, conf.health.min_free_share)
    if (
        not (conf.warehouse.catalog_schema or conf.warehouse.is_store)
        and conf.warehouse.folder.is_dir()
    ):
        yield _readers(conf.warehouse.folder)


def _pyspark(extra: str) -> Finding:
    if find_spec("pyspark") is None:
        return Finding("pyspark", BAD, "not installed", extras.install(extra))
    return Finding("pyspark", OK, "installed")


def _extras() -> Finding:
    """Missing extras are no fault: only some commands need them, and report it."""
    missing = [name for name, packages in _PACKAGES.items() if not all(map(find_spec, packages))]
    installed = ", ".join(name for name in _PACKAGES if name not in missing) or "none"
    if not missing:
        return Finding("extras", OK, f"{installed} installed")
    remedy = f"if they are needed: {extras.install(*missing)}"
    return Finding("extras", OK, f"{installed} installed; not {', '.join(missing)}", remedy)


def _jars() -> Finding:
    try:
        folder = jars.cache_folder() / "jars"
        is_there = jars.has_spark_jars()
    except ConfigError as error:
        return from_error("jars for Spark", error)
    if is_there:
        return Finding("jars for Spark", OK, f"fetched and checked, in {folder}")
    remedy = "the first `quotaflow run` fetches them from Maven Central; later runs work offline"
    return Finding("jars for Spark", WARNING, f"not fetched yet into {folder}", remedy)


def _readers(folder: Path) -> Finding:
    subject = "rights of the tables"
    if not private_folder.is_open_to_others(folder):
        return Finding(subject, OK, f"other users of this machine cannot read {folder}")
    seen = f"every user of this machine can read {folder}: who talks to which topic, from where"
    remedy = f"chmod o-rwx {shlex.quote(str(folder))}"
    return Finding(subject, WARNING, seen, remedy)


def _room(name: str, share: float, min_share: float) -> Finding:
    seen = f"{texts.share(share)} of the disk is free"
    if share >= min_share:
        return Finding(f"disk of the {name}", OK, seen)
    state = BAD if share < _NO_ROOM else WARNING
    remedy = "make room: `quotaflow upkeep` removes old rows; or move it (conf section warehouse)"
    return Finding(
        f"disk of the {name}", state, f"{seen} (threshold: {texts.share(min_share)})", remedy
    )
