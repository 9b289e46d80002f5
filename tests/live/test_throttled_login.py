"""A login that brokers throttle: every change is made, only later."""

import time

import pytest

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.kafka import admin

from .test_feedback import BYTES, apply, give_back, rows

SHARE = "request_percentage"
LEAST = 0.01
KEYS = {BYTES: "5000000", "consumer_byte_rate": "6000000"}


@pytest.mark.faults
def test_all_changes_of_a_throttled_login_are_made(cluster: LocalCluster, conf: Conf) -> None:
    users = [ConfigEntity("", "user", f"throttled-login-{n}") for n in range(5)]
    desired = [row for user in users for row in rows(cluster.cluster_id, user, KEYS)]
    with admin.client(conf.kafka.properties) as client:
        assert traffic_configs.set_quota("admin", SHARE, LEAST)(client).error_code == 0
        try:
            begin = time.monotonic()
            outcomes = apply(conf, desired)
            took_s = time.monotonic() - begin
        finally:
            assert traffic_configs.set_quota("admin", SHARE, None)(client).error_code == 0
    assert [outcome.step for outcome in outcomes] == [DONE] * 10
    assert took_s > 2, "brokers did not throttle"
    assert [outcome.step for outcome in give_back(conf)] == [DONE] * 10
