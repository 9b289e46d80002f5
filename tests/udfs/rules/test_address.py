"""One text for each address, and none for a host."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.address import normalized, special_kind, texts

from ...cases import cases


@cases(
    ("text", "expected"),
    ("IPv4", "10.0.0.7", "10.0.0.7"),
    ("IPv6 as Java prints it", "2001:db8:0:0:0:0:0:1", "2001:db8::1"),
    ("capitals", "2001:DB8::1", "2001:db8::1"),
    ("IPv4 in IPv6", "::ffff:10.0.0.7", "10.0.0.7"),
    ("a zone", "fe80::1%eth0", None),
    ("a host", "app-1.internal", None),
    ("a leading zero, which some read as octal", "010.0.0.7", None),
    ("a short form, which Java resolves to another", "10.0.7", None),
    ("a network", "10.0.0.0/8", None),
    ("a pseudonym", "hmac.k1.0123456789abcdef01234567", None),
    ("a blank", " 10.0.0.7", None),
    ("nothing", "", None),
)
def test_an_address_has_one_text(text: str, expected: str | None) -> None:
    assert normalized(text) == expected


@given(st.ip_addresses())
def test_what_is_normal_stays_and_means_the_same(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    text = normalized(address.exploded)
    if getattr(address, "scope_id", None) is None:
        assert text is not None
        assert normalized(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.7", ("10.0.0.7",)),
        ("2001:db8::1", ("2001:db8::1", "2001:db8:0:0:0:0:0:1")),
        ("2001:DB8:0:0:0:0:0:1", ("2001:db8::1", "2001:db8:0:0:0:0:0:1")),
        ("::ffff:10.0.0.7", ("10.0.0.7",)),
        ("app-1.internal", ()),
        ("", ()),
    ],
)
def test_an_address_has_the_texts_of_users_and_of_brokers(
    text: str, expected: tuple[str, ...]
) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("10.0.0.7", None),
        ("2001:db8::1", None),
        ("localhost", None),
        ("::", "unspecified"),
        ("127.8.0.1", "loopback"),
        ("::1", "loopback"),
        ("255.255.255.255", "broadcast"),
        ("224.0.0.1", "multicast"),
        ("ff05::2", "multicast"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
    ],
)
def test_special_addresses_are_of_no_one_client(text: str, kind: str | None) -> None:
    assert special_kind(text) == kind
