"""Pseudonyms: the same for equal names, secret without the key, and in every place of a name."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, Pseudonyms, is_pseudonym

from ...cases import cases

KEY = b"k" * 32
HIDDEN = Pseudonyms(KEY, "k1")
UUID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
ME = HIDDEN.pseudonym(CLIENT_ID, "ann-laptop")
THEM = HIDDEN.pseudonym(CLIENT_ID, "bob-laptop")
HERE = HIDDEN.pseudonym(ADDRESS, "10.1.2.3")


def test_it_is_hmac_sha256_cut_to_96_bits() -> None:
    digest = hmac.new(KEY, b"client_id\0ann-laptop", "sha256").hexdigest()
    assert f"hmac.k1.{digest[:24]}" == ME


@given(st.text(), st.text())
def test_equal_names_are_alike_and_no_others(one: str, other: str) -> None:
    alike = HIDDEN.pseudonym(CLIENT_ID, one) == HIDDEN.pseudonym(CLIENT_ID, other)
    assert alike == (one == other)
    assert is_pseudonym(HIDDEN.pseudonym(CLIENT_ID, one)) is bool(one)


@cases(
    "other",
    ("another key", Pseudonyms(b"o" * 32, "k1").pseudonym(CLIENT_ID, "ann-laptop")),
    ("another key's id", Pseudonyms(KEY, "k2").pseudonym(CLIENT_ID, "ann-laptop")),
    ("another column", HIDDEN.pseudonym(ADDRESS, "ann-laptop")),
    ("a client that calls itself by the pseudonym", HIDDEN.pseudonym(CLIENT_ID, ME)),
)
def test_what_differs(other: str) -> None:
    assert other != ME


def test_headers_that_a_collector_adds_are_hidden_like_those_of_the_receiver() -> None:
    assert HIDDEN.tag("kafka.header.client_id", "ann-laptop") == ME
    assert HIDDEN.tag("kafka.header.client_source_address", "10.1.2.3") == HERE
    assert HIDDEN.tag("kafka.header.principal", "User:ann") == "User:ann"


def test_the_key_is_in_no_text() -> None:
    assert "kkk" not in repr(HIDDEN)


@pytest.mark.parametrize(
    ("key", "behind"),
    [
        ("scope_name", "#producer-1"),
        ("scope_name", "#consumer-12"),
        ("thread_id", "-StreamThread-1"),
        ("thread-id", "-GlobalStreamThread"),
    ],
)
def test_what_begins_with_a_client_id_keeps_what_follows(key: str, behind: str) -> None:
    assert HIDDEN.tag(key, f"app-1{behind}") == HIDDEN.pseudonym(CLIENT_ID, "app-1") + behind
    assert HIDDEN.tag(key, "org.apache.kafka") == "org.apache.kafka"


@cases(
    ("text", "expected"),
    ("IPv4", "10.0.0.1:9092-10.1.2.3:51000-0-12", f"10.0.0.1:9092-{HERE}:51000-0-12"),
    (
        "IPv6",
        "0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:51000-3-4",
        f"0:0:0:0:0:0:0:1:9092-{HIDDEN.pseudonym(ADDRESS, '0:0:0:0:0:0:0:1')}:51000-3-4",
    ),
    ("before Kafka 4.0", "10.0.0.1:9092-10.1.2.3:51000-12", f"10.0.0.1:9092-{HERE}:51000-12"),
    ("no connection id: all of it", "10.1.2.3", HERE),
    ("none", "", ""),
)
def test_a_connection_keeps_its_port_and_the_broker(text: str, expected: str) -> None:
    assert HIDDEN.connection_id(text) == expected


@cases(
    ("text", "expected"),
    ("of the classic protocol", f"ann-laptop-{UUID}", f"{ME}-{UUID}"),
    ("of KIP-848", "mBoyeAHnR1Cyb0nQgLKQiQ", "mBoyeAHnR1Cyb0nQgLKQiQ"),
    ("none", "", ""),
)
def test_a_member_keeps_its_uuid(text: str, expected: str) -> None:
    assert HIDDEN.member_id(text) == expected


def test_a_match_keeps_what_it_selects_by() -> None:
    hidden = HIDDEN.match("client_id=ann-laptop, client_source_address=10.1.2.3,client_id")
    assert hidden == f"client_id={ME}, client_source_address={HERE},client_id"
    assert HIDDEN.match("client_software_name=.*") == "client_software_name=.*"


@pytest.mark.parametrize("entry", ["clientid=ann-laptop", "ann-laptop", "client_id:ann-laptop"])
def test_an_entry_of_a_match_that_no_broker_takes_is_hidden_whole(entry: str) -> None:
    hidden = HIDDEN.match(f"client_software_name=.*, {entry}")
    assert hidden == f"client_software_name=.*,{HIDDEN.pseudonym(CLIENT_ID, entry)}"
    addresses = Pseudonyms(KEY, "k1", frozenset({ADDRESS}))
    assert addresses.match(f" {entry} ") == f" {entry} "


def test_only_the_columns_of_conf_are_hidden() -> None:
    addresses = Pseudonyms(KEY, "k1", frozenset({ADDRESS}))
    assert addresses.pseudonym(CLIENT_ID, "ann-laptop") == "ann-laptop"
    assert addresses.member_id(f"ann-laptop-{UUID}") == f"ann-laptop-{UUID}"
    assert addresses.pseudonym(ADDRESS, "10.1.2.3") == HERE
