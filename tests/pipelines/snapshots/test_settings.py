"""Which values of conf reach views."""

from quotaflow.pipelines import config
from quotaflow.pipelines.snapshots import settings

from ...cases import cases

EXCLUDED = {
    "excluded.User:ANONYMOUS": "plan.excluded_principals",
    "excluded.User:admin": "plan.excluded_principals",
    "excluded.User:broker": "plan.excluded_principals",
    "excluded.User:receiver": "ingest.shipper_principals",
    "excluded.User:shipper": "ingest.shipper_principals",
}
UNSET = {
    "prices.produced_per_gib",
    "prices.consumed_per_gib",
    "prices.cross_rack_per_gib",
    "prices.remote_read_per_gib",
    "prices.stored_per_gib_month",
    "producer_ids.default_quota_per_s",
    "producer_ids.broker_heap_bytes",
    "replication.network_bytes_per_s",
    "replication.capacity_bytes_per_s",
}
"""Keys without a value by default: they have no row."""
SET = {key for key in settings.KEYS if key not in UNSET}
LISTED = "plan.excluded_principals"
HIDDEN = {"privacy.hides.client_address": "False", "privacy.hides.client_id": "False"}
LOGIN = {"sasl.username": "quotaflow", "sasl.password": "env:QF_UNSET"}


def settings_of(conf: config.Conf) -> dict[str, str]:
    rows = list(settings.of_conf(conf))
    values = {row["setting"]: row["setting_value"] for row in rows}
    assert len(values) == len(rows)
    return values


def test_conf_tells_whom_brokers_take_a_login_for_where_its_properties_do_not() -> None:
    for kafka in (config.KafkaSection(principal="User:CN=q"), config.KafkaSection(properties={})):
        principal = settings_of(config.Conf(kafka=kafka)).get(settings.OWN_PRINCIPAL)
        assert principal == kafka.principal


def test_each_key_is_told_once() -> None:
    assert set(settings_of(config.Conf())) == {*SET, *EXCLUDED, *HIDDEN}


@cases(
    ("listed", "principals"),
    ("its own login", [], {"User:quotaflow": "own"}),
    (
        "names with commas, and its own",
        ["User:CN=a,OU=b", "User:quotaflow"],
        {"User:quotaflow": "own", "User:CN=a,OU=b": "conf"},
    ),
)
def test_who_is_cleaned_up_after(listed: list[str], principals: dict[str, str]) -> None:
    replication = config.ReplicationSection(cleanup_principals=listed, brokers={3: 5e6})
    kafka = config.KafkaSection(properties=LOGIN)
    values = settings_of(config.Conf(kafka=kafka, replication=replication))
    assert {key: values[f"replication.cleanup.{key}"] for key in principals} == principals
    assert values[settings.OWN_PRINCIPAL] == "User:quotaflow"
    of_exclusion = {*EXCLUDED, "excluded.User:quotaflow"}
    assert len(values) == len(SET) + 4 + len(principals) + len(of_exclusion)
    assert values["replication.brokers.3"] == "5000000.0"
    assert "env:QF_UNSET" not in values.values()


@cases(
    ("conf", "expected"),
    ("by default", config.Conf(), EXCLUDED),
    (
        "as conf names them, certificates too",
        config.Conf(
            kafka=config.KafkaSection(principal="User:CN=q,O=b"),
            ingest=config.IngestSection(shipper_principals=["User:vector"]),
            plan=config.PlanSection(excluded_principals=["User:CN=broker,O=b"]),
        ),
        dict.fromkeys(("excluded.User:ANONYMOUS", "excluded.User:admin"), LISTED)
        | {
            "excluded.User:broker": LISTED,
            "excluded.User:CN=q,O=b": "own",
            "excluded.User:CN=broker,O=b": "plan.excluded_principals",
            "excluded.User:vector": "ingest.shipper_principals",
        },
    ),
)
def test_whose_quotas_are_never_advised(conf: config.Conf, expected: dict[str, str]) -> None:
    values = {key: value for key, value in settings_of(conf).items() if key.startswith("excluded.")}
    assert values == expected


def test_addresses_and_networks_are_told_with_their_bounds() -> None:
    listed = ["10.0.0.7", "10.1.0.0/16", "2001:db8::/126"]
    conf = config.Conf(producer_ids=config.ProducerIdsSection(protected_addresses=listed))
    assert settings_of(conf)["producer_ids.protected_addresses"].splitlines() == [
        "10.0.0.7 0a000007 0a000007",
        "10.1.0.0/16 0a010000 0a01ffff",
        "2001:db8::/126 " + "20010db8" + 24 * "0" + " 20010db8" + 23 * "0" + "3",
    ]
    assert settings_of(config.Conf())["producer_ids.protected_addresses"] == ""
