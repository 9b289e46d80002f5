"""Listeners that carry raft: those of the brokers compared with conf."""

from types import SimpleNamespace
from typing import Any

import pytest

from quotaflow.pipelines.doctor.brokers import raft_listeners
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError


@pytest.mark.parametrize(
    ("of_brokers", "of_conf", "state"),
    [
        ({"CONTROLLER"}, ["CONTROLLER"], "ok"),
        ({"CONTROLLER"}, ["OLD", "CONTROLLER"], "ok"),
        (set(), ["CONTROLLER"], "ok"),
        ({"CONTROLPLANE-9090"}, ["CONTROLLER"], "bad"),
        ({"CONTROLLER", "SECOND"}, ["CONTROLLER"], "bad"),
        ({"controller"}, ["CONTROLLER"], "bad"),
    ],
)
def test_a_listener_that_conf_lacks_is_bad(
    of_brokers: set[str], of_conf: list[str], state: str
) -> None:
    finding = raft_listeners(of_brokers, of_conf)
    assert finding.state == state
    missing = of_brokers - set(of_conf)
    assert all(name in finding.observed for name in missing)
    assert ("ingest.controller_listeners" in (finding.remedy or "")) is bool(missing)


def _state(values: dict[str, str | None], error: int = 0) -> ClusterState:
    def send(request: Any, broker_id: int | None) -> Any:
        ((_, name, _),) = request.resources
        assert name == str(broker_id)
        configs = [SimpleNamespace(name="log.dirs", value="/x")]
        if name in values:
            value = values[name]
            configs.append(SimpleNamespace(name="controller.listener.names", value=value))
        result = SimpleNamespace(resource_name=name, configs=configs, error_code=error)
        return SimpleNamespace(results=[result])

    return ClusterState(send)


def test_brokers_name_their_listeners() -> None:
    state = _state({"1": "A, B", "2": "B,", "3": None})
    assert state.raft_listeners([1, 2, 3, 4]) == {"A", "B"}


def test_what_a_login_may_not_read_is_an_error() -> None:
    with pytest.raises(UnansweredError):
        _state({}, error=31).raft_listeners([1])
