"""Which APIs may be sampled, and how."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config.ingest import one_of
from quotaflow.pipelines.errors import ConfigError
from quotaflow.schemas.events import BODY_APIS, RAFT_APIS, SAMPLED_APIS


@pytest.mark.parametrize(
    "text", ["{PRODUCE: 0.1}", "{PRODUCE: 0.333333333333, HEARTBEAT: 1}", "{}"]
)
def test_parts_of_a_whole_are_taken(text: str) -> None:
    sampling = config.load(overrides=[f"ingest.sampling={text}"]).ingest.sampling
    assert all(abs(fraction * one_of(fraction) - 1) < 1e-9 for fraction in sampling.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{FETCH: 0.1}", "FETCH is no API that may be sampled (those that may: PRODUCE, "),
        ("{INIT_PRODUCER_ID: 0.1}", "rules need each line of all others"),
        ("{PUSH_TELEMETRY: 0.1}", "PUSH_TELEMETRY is no API that may be sampled"),
        ("{PRODUC: 0.1}", "PRODUC is no API that may be sampled (did you mean PRODUCE?)"),
        ("{produce: 0.1}", "did you mean PRODUCE?"),
        ("{PRODUCE: 0.3}", "0.3 must be 1, 1/2, 1/3 ... 1/1000"),
        ("{PRODUCE: 0}", "must be 1, 1/2"),
        ("{PRODUCE: -0.5}", "must be 1, 1/2"),
        ("{PRODUCE: 2}", "must be 1, 1/2"),
        ("{PRODUCE: .inf}", "must be 1, 1/2"),
        ("{PRODUCE: 0.0001}", "must be 1, 1/2"),
    ],
)
def test_what_may_not_be_is_told_with_what_may(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"ingest\.sampling") as caught:
        config.load(overrides=[f"ingest.sampling={text}"])
    assert message in str(caught.value)


def test_no_api_whose_body_or_session_tells_something_is_sampled() -> None:
    # The body of a heartbeat names its group and member, as those of JOIN_GROUP do.
    required_apis = {
        *(set(BODY_APIS) - {"HEARTBEAT"}),
        *RAFT_APIS,
        "FETCH",
        "PUSH_TELEMETRY",
        "GET_TELEMETRY_SUBSCRIPTIONS",
    }
    assert not required_apis & set(SAMPLED_APIS)
