"""Names of principals: every form that people write leads to the principal, and to no other."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.udfs.rules.principal_name import bare, named, quota_user

from ...cases import cases

ARN = "User:arn:aws:sts::123456789012:assumed-role/etl/i-0a1b"
DN = "User:CN=orders.eu,OU=a b,O=x:y"
ACCOUNT = "ServiceAccount:sa-1"
PRINCIPALS = ("User:mallory", "User:mall", ACCOUNT, ARN, DN, "User:erin", "ServiceAccount:erin")
NAMES = st.text(min_size=1, max_size=30)


@cases(
    ("name", "expected"),
    ("as Kafka prints it", "User:mallory", ("User:mallory",)),
    ("without its type", "mallory", ("User:mallory",)),
    ("a type of one's own", "sa-1", (ACCOUNT,)),
    ("and in full", ACCOUNT, (ACCOUNT,)),
    ("an ARN in full", ARN, (ARN,)),
    ("an ARN", ARN.removeprefix("User:"), (ARN,)),
    ("a DN", DN.removeprefix("User:"), (DN,)),
    ("a DN as openssl prints it", "CN=orders.eu, OU=a b, O=x:y", (DN,)),
    ("a DN with more spaces", "CN = orders.eu, OU = a b, O = x:y", (DN,)),
    ("of Kafka's metrics", "CN%3Dorders.eu%2COU%3Da%20b%2CO%3Dx%3Ay", (DN,)),
    ("with spaces around it", " mallory ", ("User:mallory",)),
    ("two types", "erin", ("ServiceAccount:erin", "User:erin")),
    ("one of two", "User:erin", ("User:erin",)),
    ("another type", "User:sa-1", ()),
    ("a part of a name", "mal", ()),
    ("nothing", "", ()),
)
def test_a_name_in_any_form_leads_to_its_principal(name: str, expected: tuple[str, ...]) -> None:
    assert named(name, PRINCIPALS) == expected


@example(kind="User", name="User:a")
@example(kind="User", name="a%20b")
@given(kind=st.sampled_from(["User", "ServiceAccount", "x"]), name=NAMES)
def test_each_principal_is_reached_by_both_its_names(kind: str, name: str) -> None:
    principal = f"{kind}:{name}"
    assert named(principal, [principal, "User:other"]) == (principal,)
    assert principal in named(name, [principal])
    assert bare(principal) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mallory", "mallory"),
        ("User:mallory", "mallory"),
        (ACCOUNT, "sa-1"),
        (ARN, ARN.removeprefix("User:")),
        (ARN.removeprefix("User:"), ARN.removeprefix("User:")),
        (DN, "CN=orders.eu,OU=a b,O=x:y"),
        ("CN=a:b,OU=c", "CN=a:b,OU=c"),
        ("spiffe://x/y", "spiffe://x/y"),
        ("User:", "User:"),
    ],
)
def test_a_quota_names_its_user_without_the_type(name: str, expected: str) -> None:
    assert quota_user(name) == expected
