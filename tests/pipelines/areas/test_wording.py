"""Words of single areas: units, versions, and no more than is known."""

from collections import defaultdict
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.changes import value_text
from quotaflow.pipelines.areas.reads import suffers
from quotaflow.pipelines.areas.telemetry import by_library

from ...cases import cases
from ...rows import Row

CLIENT = {"principal": "User:a", "client_id": "web-*", "client_software_name": "java"}


@cases(
    ("key", "value", "shown"),
    ("a throttle", "leader.replication.throttled.rate", "20000", "20.0 kB/s"),
    ("a quota of bytes", "producer_byte_rate", "6000000.0", "6.0 MB/s"),
    ("a list of replicas", "leader.replication.throttled.replicas", "0:1", "0:1"),
    ("no number", "consumer_byte_rate", "none", "none"),
    ("another number", "retention.ms", "60000", "60000"),
)
def test_a_rate_has_its_unit(key: str, value: str, shown: str) -> None:
    assert value_text({"config_key": key, "config_value": value}) == shown


@cases(
    ("faults", "text"),
    ("a follower lagged", {"lagging_minutes": 1}, "may have read stock late"),
    ("brokers refused", {"too_large_answers": 8}, "has faults in reads of stock"),
    ("both", {"resets": 1, "lagging_minutes": 1}, "has faults in reads of stock"),
)
def test_a_read_says_what_is_known(faults: Row, text: str) -> None:
    given = defaultdict[str, Any](int, faults)
    assert suffers(given | {"shown_topic": "stock"}) == text


def test_versions_of_one_library_are_one_line() -> None:
    rows = [
        CLIENT | {"cluster_id": "c1", "reason": reason, "client_software_version": version}
        for reason, version in (("off", "4.1.0"), ("off", "3.9.1"), ("too_old", "3.5.0"))
    ]
    versions = [each["client_software_version"] for each in by_library(rows)]
    assert versions == ["4.1.0 and 3.9.1", "3.5.0"]


@cases(
    ("confidence", "word"),
    ("the log shows the cause", 0.9, "sure"),
    ("a little less", 0.89, "likely"),
    ("the least of likely", 0.6, "likely"),
    ("a little less than that", 0.59, "possible"),
    ("the least that a rule gives", 0.3, "possible"),
    ("nothing is known", None, ""),
)
def test_how_sure_a_cause_is_is_a_word(confidence: float | None, word: str) -> None:
    assert reasons.how_sure(confidence) == word


def test_a_share_in_evidence_is_per_cent() -> None:
    evidence = [
        {"signal": "unassigned_lag_share", "value": 1.0},
        {"signal": "members", "value": 0.0},
    ]
    text = reasons.lag_cause(
        {"cause": "no_members", "confidence": 0.95, "detail": None, "evidence": evidence}
    )
    assert text.endswith("evidence: unassigned lag 100 %, members 0")
