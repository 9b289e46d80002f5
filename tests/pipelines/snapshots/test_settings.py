"""What of conf reaches views."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.snapshots import settings

LOGIN = {"sasl.username": "quotaflow", "sasl.password": "env:QF_UNSET"}


def told(conf: config.Conf) -> dict[str, str]:
    rows = list(settings.of_conf(conf))
    found = {row["setting"]: row["setting_value"] for row in rows}
    assert len(found) == len(rows)
    return found


def test_conf_tells_whom_brokers_take_a_login_for_where_its_properties_do_not() -> None:
    for kafka in (config.Kafka(principal="User:CN=q"), config.Kafka(properties={})):
        told_of = told(config.Conf(kafka=kafka)).get(settings.OWN_PRINCIPAL)
        assert told_of == kafka.principal


def test_each_key_is_told_once() -> None:
    assert set(told(config.Conf())) == set(settings.KEYS)


@pytest.mark.parametrize(
    ("listed", "principals"),
    [
        pytest.param([], {"User:quotaflow": "own"}, id="its own login"),
        pytest.param(
            ["User:CN=a,OU=b", "User:quotaflow"],
            {"User:quotaflow": "own", "User:CN=a,OU=b": "conf"},
            id="names with commas, and its own",
        ),
    ],
)
def test_who_is_cleaned_up_after(listed: list[str], principals: dict[str, str]) -> None:
    replication = config.Replication(clean_up_principals=listed, brokers={3: 5e6})
    kafka = config.Kafka(properties=LOGIN)
    found = told(config.Conf(kafka=kafka, replication=replication))
    assert {key: found[f"replication.clean_up.{key}"] for key in principals} == principals
    assert found[settings.OWN_PRINCIPAL] == "User:quotaflow"
    assert len(found) == len(settings.KEYS) + 2 + len(principals)
    assert found["replication.brokers.3"] == "5000000.0"
    assert "env:QF_UNSET" not in found.values()
