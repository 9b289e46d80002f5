"""Answers of brokers to writes: a refusal, and what does not say whether the write was made."""

from typing import Any

import pytest
from kafka.protocol import admin

from quotaflow.pipelines.feedback.configs.change import SET, Change, Operation
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError

from ..fake_configs import desired

REQUEST_TIMED_OUT, NETWORK_EXCEPTION, POLICY_VIOLATION = 7, 13, 44


def answer(error_code: int) -> Any:
    response = admin.AlterClientQuotasResponse
    entry = response.EntryData(error_code=error_code, error_message="why", entity=[])
    return response(entries=[entry])


def change(row: DesiredConfig) -> Change:
    return Change(row, row.config_value, Operation(SET, row.config_value), "", "", 3_600)


@pytest.mark.parametrize("error_code", [REQUEST_TIMED_OUT, NETWORK_EXCEPTION])
def test_a_write_that_the_controller_did_not_answer_is_not_refused(error_code: int) -> None:
    """It may yet be made, so its record must stay open."""
    configs = LiveConfigs(ClusterState(lambda *_: answer(error_code)))
    with pytest.raises(UnansweredError):
        configs.write([change(desired())])


def test_a_refusal_is_one() -> None:
    configs = LiveConfigs(ClusterState(lambda *_: answer(POLICY_VIOLATION)))
    assert str(configs.write([change(desired())])).startswith("44 why")
