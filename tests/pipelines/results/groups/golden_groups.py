"""Requests of groups that a 4.3.1 broker logged, as ingest makes rows of them."""

from functools import cache

from quotaflow.pipelines import config
from quotaflow.udfs.facts import task
from quotaflow.udfs.facts.requests import RequestLog

from ....conftest import GOLDEN
from ....invariants.recorded_facts import unpacked
from ....record_batches import record_batch
from ....rule_rows import Rows


@cache
def requests(*groups: str) -> Rows:
    """Rows of `requests` of these groups; without any, of all."""
    lines = [
        line
        for file in sorted((GOLDEN / "groups").glob("*.jsonl"))
        if not groups or file.stem in groups
        for line in file.read_bytes().splitlines()
    ]
    return read(lines)


def read(lines: list[bytes]) -> Rows:
    """Rows of `requests` of these lines."""
    conf = config.Conf()
    log = RequestLog("c1", conf.ingest.line_options, conf.payloads.limits, None)
    return unpacked(list(task.to_rows(log)(iter([record_batch(lines)]))), "requests").to_pylist()
