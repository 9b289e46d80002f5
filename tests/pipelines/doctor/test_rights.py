"""Rights of a login by role, as brokers list them."""

from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.doctor import rights
from quotaflow.pipelines.doctor.rights import Allowed, Granting
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.schemas import acls

from ...cases import cases

NAMES = {"request_log_topic": "logs", "receiver_topic": None, "otlp_topic": None}
HOW = Granting("User:it's me", Connection("b:9093", True))
READ, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 8, 10, 11
ALL = frozenset({READ, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS})
TOOL = "kafka-acls.sh --bootstrap-server b:9093 --command-config client.properties --add"


NO_GROUP = (
    "all there; optional, and missing: Read on group spark-kafka, for only where "
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching is on"
)


@cases(
    ("role", "allowed", "expected"),
    ("all there is", "run", Allowed(ALL, {"logs": ALL}, True), ("ok", "all there")),
    ("no group, not needed", "run", Allowed(None, {"logs": ALL}, False), ("ok", NO_GROUP)),
    ("a topic that is hidden", "run", Allowed(ALL, {}, True), ("bad", "lacks Read on topic logs")),
    (
        "a topic that may be seen",
        "run",
        Allowed(ALL, {"logs": frozenset({DESCRIBE})}),
        ("bad", "lacks Read on topic logs"),
    ),
    (
        "a topic there is not",
        "run",
        Allowed(ALL, {}, True, frozenset({"logs"})),
        ("ok", "all there, 1 of them unknown"),
    ),
    (
        "configs of one topic are hidden",
        "snapshot",
        Allowed(frozenset({DESCRIBE}), {"a": ALL, "b": frozenset({DESCRIBE})}),
        (
            "warning",
            "lacks DescribeConfigs on cluster kafka-cluster, DescribeConfigs on topic *",
        ),
    ),
    (
        "a cluster that tells nothing",
        "snapshot",
        Allowed(None, {}),
        ("ok", "all there, 4 of them unknown"),
    ),
    ("another login's", "apply", Allowed(ALL, {"a": ALL}), ("ok", "all there")),
)
def test_what_a_role_lacks(role: str, allowed: Allowed, expected: tuple[str, str]) -> None:
    finding = rights.of_role(role, acls.needed(role, NAMES), allowed, HOW)
    assert (finding.state, finding.observed) == expected


def test_the_remedy_is_a_command_per_resource_with_its_words_quoted() -> None:
    missing = acls.needed("apply", NAMES)
    finding = rights.of_role("apply", missing, Allowed(frozenset(), {"a": frozenset()}), HOW)
    allowed_option = "--allow-principal 'User:it'\"'\"'s me'"
    _, _, commands = finding.remedy.partition(": ")
    assert commands.split(" && ") == [
        f"{TOOL} {allowed_option} --operation AlterConfigs --cluster",
        f"{TOOL} {allowed_option} --operation AlterConfigs --topic '*'",
    ]


def test_what_another_login_may_do_need_not_be_mended() -> None:
    nothing = Allowed(frozenset(), {"logs": frozenset()})
    finding = rights.of_role("apply", acls.needed("apply", NAMES), nothing, HOW)
    assert finding.state == "ok"
    assert finding.remedy.startswith("only if this login is to do that: kafka-acls.sh")


OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
    "sasl.oauthbearer.client.id": "quotaflow",
    "sasl.oauthbearer.client.secret": "env:SECRET",
}
CERTIFICATE = {"security.protocol": "SSL", "ssl.keystore.key": "env:KEY"}
CERTIFICATE |= {"ssl.keystore.certificate.chain": "env:CHAIN"}
KEYTAB = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
KEYTAB |= {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "quota/host@REALM"}
UNKNOWN = ("warning", "unknown: only brokers know it")


@cases(
    ("properties", "principal", "expected"),
    ("a token", OAUTH, None, UNKNOWN),
    ("a token, and conf names it", OAUTH, "User:0b0b", ("ok", "User:0b0b")),
    ("IAM", {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}, None, UNKNOWN),
    ("a certificate", CERTIFICATE, None, UNKNOWN),
    ("a keytab", KEYTAB, None, ("ok", "User:quota")),
    (
        "TLS without a login",
        {"security.protocol": "SSL"},
        None,
        ("ok", "none: this login is User:ANONYMOUS, as that of others"),
    ),
)
def test_whether_conf_says_as_whom_brokers_take_the_login(
    properties: dict[str, str], principal: str | None, expected: tuple[str, str]
) -> None:
    given = KafkaSection(
        properties={"bootstrap.servers": "b:9093", **properties}, principal=principal
    )
    finding = rights.own_principal(given)
    assert (finding.state, finding.observed) == expected


def test_a_service_credential_is_a_login() -> None:
    given = KafkaSection(properties={"bootstrap.servers": "b:9098"}, service_credential="msk")
    finding = rights.own_principal(given)
    assert (finding.state, finding.observed) == UNKNOWN


def test_a_token_s_subject_is_named_as_the_default_of_brokers() -> None:
    given = KafkaSection(properties={"bootstrap.servers": "b:9093", **OAUTH})
    finding = rights.own_principal(given, "svc\x1b[2J one")
    assert finding.state == "warning"
    assert finding.observed == (
        r"unknown: only brokers know it; by their default it is $'User:svc\x1b[2J one', "
        "from the token's claim sub"
    )
