"""Requests to a cluster: all pages and chunks are read, and a refusal stands beside the rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.protocol import admin as requests

from quotaflow.pipelines.kafka import cluster_state
from quotaflow.pipelines.kafka.cluster_state import MAX_WAIT_S, ClusterState, UnansweredError

from .fake_cluster import (
    BY_DEFAULT,
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_LEADER,
    TOPIC_AUTHORIZATION_FAILED,
    MadeCluster,
)


def partitions(pages: list[list[Any]]) -> list[tuple[str, int]]:
    return [
        (topic.name, partition.partition_index)
        for page in pages
        for topic in page
        for partition in topic.partitions
    ]


MANY = {f"t{n:02}": n % 7 + 1 for n in range(30)}
ALL = [(name, index) for name, count in MANY.items() for index in range(count)]


@pytest.mark.parametrize("page", [1, 2, 3, 5, 2_000])
def test_pages_go_on_where_the_last_ended(page: int) -> None:
    made = MadeCluster(topics=MANY, page=page)
    pages = list(ClusterState(made).topic_pages())
    assert partitions(pages) == ALL
    assert len(pages) == -(-len(ALL) // page)


def test_brokers_that_know_no_pages_are_asked_at_once() -> None:
    made = MadeCluster(topics=MANY, refused={("DescribeTopicPartitions", "version"): 1})
    assert partitions(list(ClusterState(made).topic_pages())) == ALL
    named = list(ClusterState(made).topic_pages(name for name in ("t01", "nope")))
    assert [(topic.name, topic.error_code) for page in named for topic in page] == [
        ("nope", 3),
        ("t01", 0),
    ]


def test_a_refused_page_is_an_error_of_its_own() -> None:
    made = MadeCluster(refused={("DescribeClientQuotas", None): CLUSTER_AUTHORIZATION_FAILED})
    with pytest.raises(UnansweredError, match=r"^CLUSTER_AUTHORIZATION_FAILED$"):
        ClusterState(made).client_quotas()


def test_one_refused_of_many_is_told_beside_the_others() -> None:
    names = [f"t{n}" for n in range(250)]
    made = MadeCluster(
        configs={(2, name): [("retention.ms", "1", BY_DEFAULT)] for name in names},
        refused={("DescribeConfigs", "t7"): TOPIC_AUTHORIZATION_FAILED},
    )
    answers = list(ClusterState(made).configs(cluster_state.TOPIC, names))
    assert [answer.subject for answer in answers] == names
    assert {a.subject: a.reason for a in answers if a.reason} == {
        "t7": "TOPIC_AUTHORIZATION_FAILED"
    }
    assert made.sent == [("DescribeConfigs", None)] * 3


def test_a_partition_that_moved_costs_only_itself() -> None:
    partitions = [("a", 0), ("b", 0), ("a", 1)]
    made = MadeCluster(refused={("DescribeProducers", ("a", 1)): NOT_LEADER})
    answers = {
        answer.subject: answer.reason for answer in ClusterState(made).producers(1, partitions)
    }
    assert answers == {("a", 0): None, ("b", 0): None, ("a", 1): "NOT_LEADER_FOR_PARTITION"}


def test_a_broker_that_is_silent_once_is_not_asked_again() -> None:
    made = MadeCluster(unreachable={2})
    state = ClusterState(made)
    with pytest.raises(UnansweredError, match=r"^KafkaConnectionError$"):
        state.transactions(2)
    partitions = [("t", index) for index in range(1_200)]
    assert {answer.reason for answer in state.producers(2, partitions)} == {"KafkaConnectionError"}
    assert [answer.subject for answer in state.producers(2, partitions)] == partitions
    assert state.transactions(1) == []
    assert made.sent == [("ListTransactions", 2), ("ListTransactions", 1)]


@pytest.mark.parametrize(
    ("failures", "answered"),
    [(1, True), (2, False)],
    ids=["another broker answers", "a second failure is one"],
)
def test_any_broker_is_tried_twice(failures: int, answered: bool) -> None:
    made, left = MadeCluster(quotas=[({"user": "u"}, {"request_percentage": 1.0})]), [failures]

    def send(request: Any, broker_id: int | None) -> Any:
        if left[0]:
            left[0] -= 1
            raise kafka_errors.NodeNotReadyError
        return made(request, broker_id)

    state = ClusterState(send)
    if answered:
        assert len(state.client_quotas()) == 1
    else:
        with pytest.raises(UnansweredError, match=r"^NodeNotReadyError$"):
            state.client_quotas()


@dataclass
class SlowBroker:
    """Answers a request after it timed out `timeouts` times; each time-out takes a while."""

    timeouts: int
    timeout_s: float = 30.0
    now: float = 0.0
    sent: list[str] = field(default_factory=list)

    def __call__(self, request: Any, _: int | None) -> Any:
        self.sent.append(type(request).__name__)
        if self.timeouts:
            self.timeouts -= 1
            self.now += self.timeout_s
            raise kafka_errors.RequestTimedOutError
        return MadeCluster()(request, None)

    def state(self) -> ClusterState:
        return ClusterState(self, clock=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_slow_broker_is_waited_for() -> None:
    broker = SlowBroker(timeouts=1)
    state = broker.state()
    assert state.transactions(1) == []
    broker.timeouts = 1
    assert state.transactions(1) == []
    assert len(broker.sent) == 4


@pytest.mark.parametrize(
    ("timeout_s", "sent"),
    [(30.0, 2), (1.0, 3), (MAX_WAIT_S, 1)],
    ids=["30 s", "1 s", "60 s"],
)
def test_a_broker_that_hangs_is_not_waited_for_again(timeout_s: float, sent: int) -> None:
    broker = SlowBroker(timeouts=1_000, timeout_s=timeout_s)
    state = broker.state()
    for _ in range(43):
        with pytest.raises(UnansweredError, match=r"^REQUEST_TIMED_OUT$"):
            state.transactions(1)
    assert len(broker.sent) == sent
    assert broker.now < MAX_WAIT_S + timeout_s


def quota_request(validate_only: bool) -> Any:
    return requests.AlterClientQuotasRequest(entries=[], validate_only=validate_only)


def config_request(validate_only: bool) -> Any:
    return requests.IncrementalAlterConfigsRequest(resources=[], validate_only=validate_only)


@pytest.mark.parametrize("request_of", [quota_request, config_request])
def test_a_write_that_times_out_is_not_repeated_and_the_next_request_is_sent(
    request_of: Callable[[bool], Any],
) -> None:
    broker = SlowBroker(timeouts=1)
    state = broker.state()
    with pytest.raises(UnansweredError, match=r"^REQUEST_TIMED_OUT$"):
        state.ask(request_of(False))
    assert state.client_quotas() == []
    assert len(broker.sent) == 2
    assert not cluster_state.is_write(request_of(True))
