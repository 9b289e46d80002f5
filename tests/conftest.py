"""Fixtures shared by all tests: golden bytes, and one Spark session for the whole run."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session

from . import spark_home
from .command_line import command, table_command  # noqa: F401  fixtures of all tests
from .delta_tables import fill, warehouse  # noqa: F401  as above
from .pipelines.report.browser import tab  # noqa: F401  as above
from .pushes import bomb, push_lines  # noqa: F401  as above
from .spark_catalog import catalog  # noqa: F401  as above

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A slow or busy machine is no fault of what is tested: pytest's timeout ends what hangs. The gate
# draws the same examples each time: what other examples find is for `make faults`, not for a
# change that did nothing to the rule.
settings.register_profile("gate", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile("gate")

_OBJECTS = 100_000
"""New objects before garbage is collected: with Python's 700 that takes a tenth of a run."""

GOLDEN = Path(__file__).parent / "golden"


def pytest_configure(config: pytest.Config) -> None:
    """Take Ctrl-C, and let children take it, also where a shell's & made this process ignore it.

    Spark's JVMs start from the archive of their classes, also those of children. No conf of this
    user is read, here or in children.
    """
    for name in [name for name in os.environ if name.upper().startswith("QUOTAFLOW_")]:
        del os.environ[name]
    folder = tempfile.TemporaryDirectory(prefix="quotaflow-config-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_CONFIG_HOME"] = folder.name
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ |= spark_home.environment()
    gc.set_threshold(_OBJECTS, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser, so that no test can forget to say it."""
    for item in items:
        if "tab" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_collection_finish() -> None:
    """Leave what was collected out of each collection of garbage: it lives as long as the run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def golden() -> Path:
    """Lines and payloads captured from a real Kafka 4.3.1 cluster."""
    return GOLDEN


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The session jobs use, with two cores."""
    # Delta keeps the state of each table that was read, and tests read thousands.
    few_tables = {"spark.databricks.delta.delta.log.cacheSize": "50"}
    settings = spark_home.LONG_LIVED | few_tables
    spark = session.get(config.SparkSection(driver_memory="3g", conf=settings))
    yield spark
    spark.stop()
