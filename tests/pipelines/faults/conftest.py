"""What goes wrong under jobs that read recorded lines: no Kafka, a warehouse for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.streaming import sources

from . import recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Topic = Callable[[list[list[tuple[int, bytes]]]], Path]
Made = Callable[..., JobEnvironment]


@pytest.fixture
def topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    """Writes batches of lines, and lets ingest read them."""
    monkeypatch.setattr(sources, "read_topic", sources.read_topic)

    def make(batches: list[list[tuple[int, bytes]]]) -> Path:
        folder = tmp_path / "topic"
        recorded.write(folder, batches)
        recorded.replace_topic(folder)
        return folder

    return make


@pytest.fixture
def made(spark: "SparkSession", tmp_path: Path) -> Made:
    """Makes warehouses by their names, with the tables of some jobs."""

    def make(name: str, *jobs: str, own: "SparkSession | None" = None) -> JobEnvironment:
        return recorded.setting(own or spark, tmp_path / name, jobs)

    return make


@pytest.fixture(autouse=True)
def no_query_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A query that a test left would go on under the next one."""
    yield
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        assert [query.name for query in spark.streams.active] == []
