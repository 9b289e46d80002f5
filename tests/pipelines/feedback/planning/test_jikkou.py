"""Quotas as Jikkou resources; changes that Jikkou cannot express are counted."""

import yaml

from quotaflow.pipelines.feedback.planning import jikkou

from ..fake_configs import desired, planned

RATE = "leader.replication.throttled.rate"


def documents(*rows: object) -> list[str]:
    made = planned(*rows)  # type: ignore[arg-type]
    return list(jikkou.documents(made))


def test_each_entity_is_a_resource() -> None:
    rows = [
        desired("a: b"),
        desired("a: b", config_key="request_percentage", config_value="12.5"),
        desired("app", entity_type="client-id"),
        desired("z", entity_client_id="app"),
    ]
    specs = [yaml.safe_load(text)["spec"] for text in documents(*rows) if text.startswith("---")]
    assert specs == [
        {"type": "CLIENT", "entity": {"clientId": "app"}, "configs": {"producerByteRate": 1e3}},
        {
            "type": "USER",
            "entity": {"user": "a: b"},
            "configs": {"producerByteRate": 1e3, "requestPercentage": 12.5},
        },
        {
            "type": "USER_CLIENT",
            "entity": {"user": "z", "clientId": "app"},
            "configs": {"producerByteRate": 1e3},
        },
    ]


def test_an_entity_wanted_by_two_sources_is_one_resource_and_its_other_quotas_may_stay() -> None:
    rows = [
        desired("a", priority=15),
        desired("b", priority=20),
        desired("a", priority=30, config_key="consumer_byte_rate"),
    ]
    texts = documents(*rows)
    specs = [yaml.safe_load(text)["spec"] for text in texts[1:]]
    assert [spec["entity"] for spec in specs] == [{"user": "a"}, {"user": "b"}]
    assert list(specs[0]["configs"]) == ["producerByteRate", "consumerByteRate"]
    # By default Jikkou removes quotas that a resource does not name.
    assert texts[0].startswith("#")
    assert "limits-delete-orphans=false" in texts[0]


def test_what_has_no_resource_is_counted() -> None:
    rate = desired("1", entity_type="broker", config_key=RATE, config_value="2000000")
    removed = desired(config_value=None, prior_value="7")
    new = desired("n", config_key="producer_ids_rate", config_value="1")
    assert documents(rate, removed, new) == [
        "# left out, as Jikkou has no resource for it: 3 changes"
    ]
