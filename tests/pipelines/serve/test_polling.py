"""Browsers that ask for news for an hour, as fast as they get answers: memory stays flat."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...own_process import quotaflow
from ...schemas.views.view_tables import make_table
from .serving_pages import CONTENT, get

BROWSERS, MINUTES, WARM = 20, 60, 80
"""In each minute a table changes, and each browser asks once; the first ones warm up: threads of
delta-rs start one by one for 70 minutes, up to a hundred, each with memory of its own."""
GROWTH_BYTES = 24_000_000
PATHS = ("/find", "/broker?name=1", "/find?q=a", "/move?name=x-0")


@contextmanager
def server(warehouse: Warehouse) -> Iterator[tuple[str, psutil.Process]]:
    """Pages of a process of its own."""
    place = ("--set", f"warehouse.path={warehouse.conf.path}")
    words = quotaflow("-q", "serve", "--port", "0", *place)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2], psutil.Process(process.pid)
        finally:
            process.terminate()
        assert process.wait(300) == 130


@pytest.mark.faults
def test_an_hour_of_polling_takes_no_more_memory(filled: Warehouse) -> None:
    progress = "pipeline_progress"
    with server(filled) as (url, process):
        start_bytes = 0
        for minute in range(MINUTES + WARM):
            make_table(filled, TABLES[progress], CONTENT[progress])
            tags: dict[str, str] = {}
            for browser in range(BROWSERS):
                path = PATHS[browser % len(PATHS)]
                headers = {"If_None_Match": tags[path]} if path in tags else {}
                answer = get(url, path, **headers)
                assert answer.status in {200, 304, 404}
                tags[path] = answer.headers["ETag"]
            if minute == WARM:
                start_bytes = process.memory_full_info().uss
        assert process.memory_full_info().uss - start_bytes < GROWTH_BYTES
