import pytest

from quotaflow.udfs.rules.client_metrics import Client, Subscription, matches
from quotaflow.udfs.rules.lease import TemporarySubscription, until_s

from ...cases import cases

ONE, TWO = "vl7CCx68Qw29SsxmLSK4Xg", "-_7CCx68Qw29SsxmLSK4Xg"


def test_the_name_tells_for_whom_and_until_when():
    made = TemporarySubscription((ONE,), ("a.",), 1_000, 1_795_219_200)
    assert made.name == f"quotaflow-troubleshoot-{ONE}-until-1795219200"
    assert until_s(made.name) == 1_795_219_200


def test_several_instances_share_a_name_in_any_order():
    names = {TemporarySubscription(ids, ("a.",), 1_000, 5).name for ids in [(ONE, TWO), (TWO, ONE)]}
    assert len(names) == 1
    assert until_s(names.pop()) == 5


@pytest.mark.parametrize(
    "name", ["all", "", "quotaflow-troubleshoot-x", "quotaflow-troubleshoot-x-until-soon"]
)
def test_other_resources_are_no_lease(name):
    assert until_s(name) is None


def test_it_matches_its_instances_alone():
    made = Subscription.from_configs(
        "s", TemporarySubscription((ONE, TWO), ("a.", "b."), 1_000, 5).configs
    )
    assert (made.metrics, made.interval_ms) == (("a.", "b."), 1_000)
    assert [matches(made, Client(each)) for each in (ONE, TWO, ONE[::-1])] == [True, True, False]


@cases(
    ("lease", "problem"),
    ("a space", TemporarySubscription((ONE,), ("a b",), 1_000, 5), "is not a prefix"),
    ("a comma", TemporarySubscription((ONE,), ("a,",), 1_000, 5), "is not a prefix"),
    ("no metric", TemporarySubscription((ONE,), (), 1_000, 5), "is not a prefix"),
    ("too often", TemporarySubscription((ONE,), ("*",), 50, 5), "over 99 and at most 3.6e"),
    ("a pattern", TemporarySubscription((".*",), ("*",), 1_000, 5), "client_instance_id="),
)
def test_what_no_resource_may_hold_is_refused(lease, problem):
    with pytest.raises(ValueError, match=problem):
        _ = lease.configs
