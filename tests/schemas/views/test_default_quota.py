"""When the default of all users gets producer_ids_rate, and whom that would slow."""

from datetime import timedelta
from typing import Any

from quotaflow.pipelines.feedback.planning import plan_inputs

from ...rows import Row, quota
from .limit_rows import HISTORY_S, cluster, heap, history, ids, loop, rates, settings
from .view_tables import Tables, assert_outcomes

USERS = ("erin", "frank", "grace")
RATE = "producer_ids_rate"
CONF = {
    "probe__producer_ids_rate": "accepted",
    "producer_ids__default_quota_per_s": "1.0",
    "plan__max_entities": 2,
    "plan__default_quotas": "true",
}


def many(*more_rates: Row, users: tuple[str, ...] = USERS, **others: Any) -> Tables:
    """A cluster where more users offend than a plan limits; `more_rates` are of others."""
    content: Tables = {"address_clients": history(), "producer_id_uses": []}
    content["producer_id_rates"] = list(more_rates)
    for number, user in enumerate(users):
        owner = {"principal": f"User:{user}", "client_address": f"10.0.0.{number + 5}"}
        content["address_clients"] += loop(**owner)
        content["producer_id_uses"] += [
            row | {"producer_id": row["producer_id"] and row["producer_id"] + 1_000 * number}
            for row in ids(**owner)
        ]
        content["producer_id_rates"] += rates(owner["principal"])
    return cluster(**content | {"settings": settings(**CONF)} | others)


def calm(principal: str = "User:calm", **others: Any) -> list[Row]:
    """Seconds of a principal that is over no quota and offends nobody."""
    return rates(principal, **{"is_violating": False, "throttle_time_ms": 0} | others)


def earlier(rows: list[Row], by_s: float) -> list[Row]:
    """The same seconds, so much before."""
    times = [row["event_time"] - timedelta(seconds=by_s) for row in rows]
    return [
        row | {"event_time": time, "event_date": time.date()}
        for row, time in zip(rows, times, strict=True)
    ]


def default(value: float, **others: Any) -> Row:
    """A default of all users that a snapshot saw."""
    return quota(0, RATE, value, user=None, is_default_user=True, **others)


CASES: dict[tuple[str | None, ...], dict[str, Tables]] = {
    ("1.0", None, None): {
        "more offend than a plan limits": many(),
        "longer ago": many(*earlier(calm(), HISTORY_S + 3_600)),
        "another as fast as the default": many(*calm(rate_per_s=1.0)),
        "another with a quota of its own": many(
            *calm(), client_quotas=[quota(0, RATE, 9, user="calm")]
        ),
        "ids that leaders hold are the same ids": many(*calm(kind="activation")),
        "a default of a client id": many(client_quotas=[default(4.0, is_default_client_id=True)]),
    },
    (): {
        "a plan can limit each": many(users=USERS[:2]),
        "conf lets a plan limit more": many(settings=settings(**CONF | {"plan__max_entities": 5})),
        "stock Kafka": many(
            settings=settings(**CONF | {"probe__producer_ids_rate": "refused: 42"})
        ),
        "conf has no default": many(
            settings=settings(**{k: v for k, v in CONF.items() if "default_quota_per" not in k})
        ),
        "settings of a release before": many(
            settings=settings(probe__producer_ids_rate="accepted")
        ),
        "no harm": many(active_producers=heap(5)),
        "one offender has a quota of its own": many(client_quotas=[quota(0, RATE, 9, user="erin")]),
        "one offender has another quota of conf": many(
            producer_id_rates=[
                *rates("User:erin", quota_per_s=1.5),
                *rates("User:frank"),
                *rates("User:grace"),
            ]
        ),
        "no second of more than a minute": many(
            settings=settings(**CONF | {"plan__offence_period_s": 36_000})
        ),
    },
    ("1.0", None, "default_quota_off"): {
        "conf does not allow it": many(
            settings=settings(**CONF | {"plan__default_quotas": "false"})
        )
    },
    ("1.0", None, "default_slows_others"): {
        "it would slow another": many(*calm()),
        "it would slow another, and conf does not allow it": many(
            *calm(), settings=settings(**CONF | {"plan__default_quotas": "false"})
        ),
        "one fast second of a week": many(*earlier(calm()[:1], HISTORY_S - 3_600)),
        "another with a quota of its client id alone": many(
            *calm(), client_quotas=[quota(0, RATE, 9, user="calm", client_id="app")]
        ),
        "another with another quota of its own": many(
            *calm(), client_quotas=[quota(0, "producer_byte_rate", 9, user="calm")]
        ),
        "another with a higher quota of conf": many(*calm(quota_per_s=5.0)),
        "an offender with a higher quota of conf": many(
            *rates("User:heidi", rate_per_s=9.0, quota_per_s=5.0)
        ),
        "an administrator": many(*calm("User:admin")),
        "quotaflow": many(*calm("User:us")),
        "a principal that is not known": many(*calm(None)),
    },
    ("1.0", None, "default_history_short"): {
        "a short history": many(
            settings=settings(**CONF | {"plan__address_history_s": 30 * 86_400})
        )
    },
    ("0.5", "0.5", None): {"a lower default is set": many(client_quotas=[default(0.5)])},
    ("1.0", "4.0", None): {"a higher default is set": many(client_quotas=[default(4.0)])},
}


def test_the_default_is_proposed_only_where_single_limits_do_not_do() -> None:
    names = ("entity_type", "config_key", "config_value", "prior_value", "blocked_reason")
    outcomes = {(("user", RATE, *each) if each else ()): alike for each, alike in CASES.items()}
    # No row of another kind names a default.
    actual = assert_outcomes(outcomes, "desired_configs WHERE entity_name IS NULL", *names)
    (row,) = actual["more offend than a plan limits"]
    assert plan_inputs.worded(row).reason.startswith(
        "3 users take producer ids faster than the default quota; a plan limits at most 2 users "
        "one by one"
    )
    assert "458 MB of heap" in plan_inputs.worded(row).reason


ONE = {"users": USERS[:1]}
OWN_QUOTA = {number: quota(0, RATE, number, user="erin") for number in (0.5, 4.0)}
LIMITS: dict[tuple[str | None, ...], dict[str, Tables]] = {
    ("1.0", None): {
        "no default": many(**ONE),
        "a higher default": many(**ONE, client_quotas=[default(4.0)]),
    },
    (): {"a default that limits as much": many(**ONE, client_quotas=[default(1.0)])},
    ("1.0", "4.0"): {
        "an own quota beside the default": many(**ONE, client_quotas=[default(1.0), OWN_QUOTA[4.0]])
    },
    ("0.5", "0.5"): {"an own quota that is lower": many(**ONE, client_quotas=[OWN_QUOTA[0.5]])},
}


def test_a_user_is_limited_beside_the_default() -> None:
    of_erin = "desired_configs WHERE entity_name = 'erin'"
    assert_outcomes(LIMITS, of_erin, "config_value", "prior_value")
