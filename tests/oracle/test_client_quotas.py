"""The quota that holds a client, and its bucket, against the broker's own ClientQuotaManager."""

import json
import subprocess
from dataclasses import asdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quotaflow.udfs.rules.quota import LEVELS, QuotaEntity

from .kafka_programs import compiled
from .rules.quota import effective, entity

UNLIMITED = float(2**63 - 1)

# Few names, so that entities meet; one that Kafka escapes, and one that looks like its default.
USERS = st.sampled_from(["alice", "bob", "CN=a b,O=ü*%", "<default>", "default"])
CLIENT_IDS = st.sampled_from(["orders", "clicks", "a:b*", "<default>", "?"])
CLIENTS = st.tuples(USERS, CLIENT_IDS | st.just(""))
ENTITIES = st.builds(entity, st.sampled_from(LEVELS), USERS, CLIENT_IDS)
QUOTAS = st.none() | st.sampled_from([0.0, 1.0, 0.5, 1e12]) | st.floats(0, 1e9)


@pytest.fixture(scope="module")
def quota_manager(tmp_path_factory):
    """Asks Kafka's class: (quotas in the order they are set, clients) to its answers."""
    command = compiled("ClientQuotas", tmp_path_factory.mktemp("client_quotas"))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8") as jvm:

        def ask(quotas, clients):
            request = {
                "quotas": [asdict(entity) | {"quota": quota} for entity, quota in quotas],
                "clients": [{"user": user, "client_id": name} for user, name in clients],
            }
            jvm.stdin.write(json.dumps(request) + "\n")
            jvm.stdin.flush()
            return [tuple(answer) for answer in json.loads(jvm.stdout.readline())]

        yield ask


EVERY_LEVEL = [(entity(level, "alice", "orders"), float(n)) for n, level in enumerate(LEVELS, 1)]


@settings(max_examples=settings().max_examples * 8)
@given(st.lists(st.tuples(ENTITIES, QUOTAS), max_size=20), st.lists(CLIENTS, min_size=1))
@example(EVERY_LEVEL, [("alice", "orders"), ("alice", ""), ("bob", "orders"), ("bob", "clicks")])
@example(EVERY_LEVEL[4:5], [("alice", "")])
def test_a_client_is_held_by_the_quota_kafka_says(quota_manager, quotas, clients):
    current = dict[QuotaEntity, float]()
    for owner, quota in quotas:
        current.pop(owner, None)
        if quota is not None:
            current[owner] = quota
    for client, (bound, user, client_id) in zip(
        clients, quota_manager(quotas, clients), strict=True
    ):
        limit = effective(current, *client)
        assert (limit.quota if limit else UNLIMITED) == bound
        if limit:
            assert (limit.quota_bucket_user or "", limit.quota_bucket_client_id or "") == (
                user,
                client_id,
            )
