"""Why a Java program failed: the cause behind the others, and no secret, of what real ones printed.

tests/golden/java_output has what Kafka 4.3.1, Ivy and JDK 17 printed, standard error first.
"""

from pathlib import Path

import pytest

from quotaflow.pipelines.spark.java_output import first_cause

from ... import case_tables
from ...cases import cases

PRINTED = Path(__file__).parents[2] / "golden" / "java_output"
REAL = {
    "reassign-no-topic": "UnknownTopicOrPartitionException: Topic no_such not found.",
    "reassign-no-broker": "AdminCommandFailedException: Unknown broker id 7",
    "reassign-junk": "JsonEOFException: Unexpected end-of-input: expected close marker for Object "
    "(start marker at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); "
    "line: 1, column: 1])",
    "reassign-no-file": "NoSuchFileException: /nowhere.json",
    "reassign-login": "SaslAuthenticationException: Authentication failed: "
    "Invalid username or password",
    "reassign-away": "TimeoutException: Timed out waiting for a node assignment. "
    "Call: listPartitionReassignments",
    "configs-broker": "InvalidRequestException: Invalid value -4 for configuration "
    "background.threads: Value must be at least 1",
    "groups-login": "SaslAuthenticationException: Authentication failed: "
    "Invalid username or password",
    "console-consumer-login": "SaslAuthenticationException: Authentication failed: "
    "Invalid username or password",
    "perf-config": "IllegalArgumentException: JAAS config entry not terminated by semi-colon",
    "topics-keystore": "NoSuchFileException: /nowhere.jks",
    "topics-absent": "IllegalArgumentException: Topic 'nope' does not exist as expected",
    "topics-option": "UnrecognizedOptionException: nosuchoption is not a recognized option",
    "storage-conf": 'ConfigException: Missing required configuration "controller.listener.names" '
    "which has no default value.",
    "broker-conf": 'ConfigException: Missing required configuration "controller.listener.names" '
    "which has no default value.",
    "no-main": "ClassNotFoundException: org.example.Nowhere",
    "jvm-flag": "Unrecognized VM option 'NoSuchFlag' | "
    "Error: Could not create the Java Virtual Machine.",
    "jvm-heap": "Error occurred during initialization of VM | Too small maximum heap",
    "jvm-agent": "Error: Password file not found: /nowhere | "
    "jdk.internal.agent.AgentConfigurationError",
    "javac": "X.java:1: error: cannot find symbol | "
    'package quotaflow; class X { void a() { foo(); } int b = ""; }',
    "ivy": "ConnectException: Connection refused",
}
FRAME = "\tat a.B.c(B.java:1)"


def test_every_captured_output_is_in_the_table() -> None:
    assert {file.stem for file in PRINTED.iterdir()} == REAL.keys()


@pytest.mark.parametrize("name", REAL)
def test_the_first_cause_of_what_a_real_program_printed(name: str) -> None:
    assert first_cause((PRINTED / f"{name}.txt").read_text(encoding="utf-8")) == REAL[name]


@cases(
    ("lines", "expected"),
    *case_tables.rows(__file__, "the_first_cause_of_lines", FRAME=FRAME),
    ("a long line", ["x" * 600], "x" * 500 + "..."),
)
def test_the_first_cause_of_lines(lines: list[str], expected: str) -> None:
    assert first_cause("\n".join(lines)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "--add-config SCRAM-SHA-256=[iterations=4096,password=pass1]",
        'sasl.jaas.config=a.PlainLoginModule required username="u" password="pass1";',
        'password="pass1 with a pass1"',
        "ssl.key.password: pass1",
        '{"clientSecret": "pass1"}',
        "basic.auth.user.info = user:pass1",
        "Authorization: Bearer pass1",
        "https://user:pass1@proxy.example.com:3128",
        "ssl.truststore.password=[pass1, pass1]",
    ],
)
def test_a_secret_is_not_shown(text: str) -> None:
    for printed in (text, f"ERROR {text}", f"x.AException: refused {text}"):
        shown = first_cause(printed)
        assert "pass1" not in shown
        assert "(not shown)" in shown
