"""The jar that a release has for brokers, built once for the tests of a process."""

import importlib.util
import tempfile
from functools import cache
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars

_BUILDER = Path(__file__).parents[1] / ".ci" / "release" / "receiver_jar.py"
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@cache
def broker_jar() -> Path:
    """Built as `make jar` does; removed when the process ends."""
    spec = importlib.util.spec_from_file_location("receiver_jar", _BUILDER)
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="broker-jar-"))
    path: Path = builder.build(Path(_FOLDERS[-1].name), kafka_jars())
    return path
