"""What a micro-batch's function holds goes to Spark Connect's server: all of it can be pickled."""

from typing import Any

import pytest
from pyspark import cloudpickle

from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.facts import ingest
from quotaflow.pipelines.facts.client_metrics import PointIngest
from quotaflow.pipelines.facts.fetches import Fetches
from quotaflow.pipelines.facts.forward_metrics import PointForwarding
from quotaflow.pipelines.facts.otlp_receiver import endpoint
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse

CONF = Conf.model_validate({"kafka": {"properties": {"sasl.password": "env:PICKLED_PW"}}})
FORWARD = Forward(url="https://collector:4318/v1/metrics")
WRITERS: dict[str, Any] = {
    "ingest_request_log": ingest.of_request_log(CONF, "c1"),
    "ingest_receiver": ingest.of_receiver(CONF, "c1"),
    "ingest_otlp": ingest.of_collector(CONF, "c1"),
    "client_metrics": PointIngest(CONF),
    "fetches": Fetches(CONF.fetch_sessions),
    "forward_metrics": PointForwarding(FORWARD, endpoint(FORWARD)),
} | {
    name: ResultMaintainer(job.results(CONF), CONF.results)
    for name, job in JOBS.items()
    if job.results
}


def test_every_job_is_looked_at() -> None:
    assert WRITERS.keys() == JOBS.keys()


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_comes_back_whole_and_carries_no_login(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PICKLED_PW", "hunter2")
    sent = cloudpickle.dumps(WRITERS[name].write)
    assert b"hunter2" not in sent
    back = cloudpickle.loads(sent).__self__
    assert type(back) is type(WRITERS[name])
    attribute = "source" if name in ingest.INGESTS else "conf"
    assert getattr(back, attribute) == getattr(WRITERS[name], attribute)


def test_a_key_is_looked_up_before_a_writer_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PICKLED_KEY", "k" * 32)
    conf = Conf.model_validate({"privacy": {"key": "env:PICKLED_KEY"}})
    log = ingest.of_request_log(conf, "c1")
    pushes = ingest.of_receiver(conf, "c1")
    sent = [cloudpickle.dumps(log.write), cloudpickle.dumps(pushes.write)]
    monkeypatch.delenv("PICKLED_KEY")
    for writer in sent:
        assert cloudpickle.loads(writer).__self__.source.pseudonyms.key == b"k" * 32


def test_a_batch_and_its_tables_come_back_equal() -> None:
    batch = Batch(Warehouse(CONF.warehouse), "fetches", "q1", 7, "/part", replayed=True)
    assert cloudpickle.loads(cloudpickle.dumps(batch)) == batch
