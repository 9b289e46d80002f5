"""Retention that overtakes a job: named, accepted, counted, and the rest is read once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import TopicPartition

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from . import quiet_clients
from .conftest import of_topic
from .tables_read import query

JOB = "ingest_request_log"


@dataclass
class Log:
    """A topic of one partition, and what is read of it."""

    cluster: LocalCluster
    conf: Conf
    name: str

    def send(self, numbers: range) -> None:
        lines = map(quiet_clients.metadata_line, numbers)
        quiet_clients.send(self.cluster, self.name, lines)

    def delete_before(self, offset: int) -> None:
        with self.cluster.admin() as admin:
            admin.delete_records({TopicPartition(self.name, 0): offset})

    def run(self, *, accept_lost_records: bool = False) -> int:
        conf = of_topic(self.conf, self.name)
        return runner.run(
            conf, [JOB], None, lambda _: None, accept_lost_records=accept_lost_records
        )

    @property
    def checkpoint(self) -> Path:
        return Warehouse(self.conf.warehouse).checkpoint(JOB)

    def read(self) -> list[int]:
        rows = query(self.conf, "SELECT correlation_id FROM requests")
        return sorted(row["correlation_id"] for row in rows)

    def lost(self) -> dict[str, int]:
        sql = (
            "SELECT reason, sum(row_count) AS n FROM pipeline_progress WHERE outcome = 'lost' "
            "GROUP BY reason"
        )
        return {row["reason"]: row["n"] for row in query(self.conf, sql)}


@pytest.fixture
def log(cluster: LocalCluster, conf: Conf) -> Callable[[str], Log]:
    def make(name: str) -> Log:
        cluster.create_topics([name], partitions=1)
        return Log(cluster, conf, name)

    return make


@pytest.mark.faults
def test_retention_that_overtook_a_job_is_named_and_what_was_lost_is_counted(
    log: Callable[[str], Log],
) -> None:
    own = log("overtaken")
    own.send(range(10))
    assert own.run() == 10
    own.send(range(10, 20))
    own.delete_before(13)
    with pytest.raises(
        CheckpointError,
        match=r"partition 0 begins at 13, so that the 3 records from 10 on were deleted before "
        r"they were read\. Retention of the topic .*--accept-lost-records",
    ):
        own.run()
    assert (own.run(accept_lost_records=True), own.run()) == (7, 0)
    assert own.read() == [*range(10), *range(13, 20)]
    assert own.lost() == {"deleted_before_read": 3}


@pytest.mark.faults
def test_a_batch_that_was_cut_off_and_deleted_is_counted_too(log: Callable[[str], Log]) -> None:
    own = log("cut-off")
    own.send(range(10))
    assert own.run() == 10
    own.send(range(10, 20))
    assert own.run() == 10
    (own.checkpoint / "commits" / "1").unlink()
    (own.checkpoint / "commits" / ".1.crc").unlink()
    own.delete_before(15)
    own.send(range(20, 24))
    with pytest.raises(CheckpointError, match="the 5 records from 10 on were deleted"):
        own.run()
    assert own.run(accept_lost_records=True) == 4
    assert own.read() == list(range(24))
    # Whether the batch wrote them before is unknown.
    assert own.lost() == {"deleted_before_read": 5, "cut_off_and_deleted": 5}


@pytest.mark.faults
def test_a_log_that_was_cut_back_is_named_and_what_is_new_is_read(
    log: Callable[[str], Log],
) -> None:
    own = log("cut-back")
    own.send(range(10))
    assert own.run() == 10
    own.send(range(10, 13))
    reached = own.checkpoint / "offsets" / "0"
    reached.write_text(reached.read_text().replace('"0":10', '"0":500'))
    with pytest.raises(CheckpointError, match=r"partition 0 ends at 13, and was read to 500.*cut"):
        own.run()
    assert own.run(accept_lost_records=True) == 3
    assert own.read() == list(range(13))
