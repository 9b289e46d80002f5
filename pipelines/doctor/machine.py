"""This machine: Java, Python packages, jars, and room on its disks."""

from collections.abc import Iterator
from importlib.util import find_spec

from quotaflow.pipelines import extras
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, from_check, from_error
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.spark import jars, java, session

_OF_EXTRAS = {
    "local": ("pyspark", "delta"),
    "report": ("jinja2", "plotly"),
    "metrics": ("prometheus_client",),
    "quality": ("great_expectations",),
    "demo": ("confluent_kafka",),
}
_NO_ROOM = 0.02


def findings(conf: Conf) -> Iterator[Finding]:
    """Whether jobs can run here at all, and how long."""
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


def _pyspark(extra: str) -> Finding:
    if find_spec("pyspark") is None:
        return Finding("pyspark", BAD, "not installed", extras.install(extra))
    return Finding("pyspark", OK, "installed")


def _extras() -> Finding:
    """What is not installed only some commands need, and they say so."""
    missing = [name for name, packages in _OF_EXTRAS.items() if not all(map(find_spec, packages))]
    installed = ", ".join(name for name in _OF_EXTRAS if name not in missing) or "none"
    if not missing:
        return Finding("extras", OK, f"{installed} installed")
    remedy = f"where they are wanted: {extras.install(*missing)}"
    return Finding("extras", OK, f"{installed} installed; not {', '.join(missing)}", remedy)


def _jars() -> Finding:
    try:
        folder = jars.cache_folder() / "jars"
    except ConfigError as error:
        return from_error("jars for Spark", error)
    if any(folder.glob("spark-jars-*/checked.json")):
        return Finding("jars for Spark", OK, f"fetched and checked, in {folder}")
    remedy = "the first `quotaflow run` fetches them from Maven Central; later runs work offline"
    return Finding("jars for Spark", WARNING, f"not fetched yet into {folder}", remedy)


def _room(name: str, share: float, least: float) -> Finding:
    seen = f"{share:.0%} of the disk is free"
    if share >= least:
        return Finding(f"disk of the {name}", OK, seen)
    state = BAD if share < _NO_ROOM else WARNING
    remedy = "make room: `quotaflow upkeep` removes what is kept too long; or move it (warehouse)"
    return Finding(f"disk of the {name}", state, f"{seen} (bound: {least:.0%})", remedy)
