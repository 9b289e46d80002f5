"""Names of principals: every form that people write leads to the principal, and to no other."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.udfs.rules.principal_name import bare, named, quota_user

ARN = "User:arn:aws:sts::123456789012:assumed-role/etl/i-0a1b"
DN = "User:CN=orders.eu,OU=a b,O=x:y"
ACCOUNT = "ServiceAccount:sa-1"
PRINCIPALS = ("User:mallory", "User:mall", ACCOUNT, ARN, DN, "User:erin", "ServiceAccount:erin")
NAMES = st.text(min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("User:mallory", ("User:mallory",), id="as Kafka prints it"),
        pytest.param("mallory", ("User:mallory",), id="without its type"),
        pytest.param("sa-1", (ACCOUNT,), id="a type of one's own"),
        pytest.param(ACCOUNT, (ACCOUNT,), id="and in full"),
        pytest.param(ARN, (ARN,), id="an ARN in full"),
        pytest.param(ARN.removeprefix("User:"), (ARN,), id="an ARN"),
        pytest.param(DN.removeprefix("User:"), (DN,), id="a DN"),
        pytest.param("CN=orders.eu, OU=a b, O=x:y", (DN,), id="a DN as openssl prints it"),
        pytest.param("CN = orders.eu, OU = a b, O = x:y", (DN,), id="a DN with more spaces"),
        pytest.param("CN%3Dorders.eu%2COU%3Da%20b%2CO%3Dx%3Ay", (DN,), id="of Kafka's metrics"),
        pytest.param(" mallory ", ("User:mallory",), id="with spaces around it"),
        pytest.param("erin", ("ServiceAccount:erin", "User:erin"), id="two types"),
        pytest.param("User:erin", ("User:erin",), id="one of two"),
        pytest.param("User:sa-1", (), id="another type"),
        pytest.param("mal", (), id="a part of a name"),
        pytest.param("", (), id="nothing"),
    ],
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
