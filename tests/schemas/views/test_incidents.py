"""Symptoms that have one cause at one time are one incident."""

from ...cases import cases
from ...rows import used
from .test_client_diagnoses import BEGAN, MINUTES, RATE, among_healthy, minutes
from .view_tables import Picked, Tables, picked, view

THROTTLE = {"throttle": 900.0}
SHOWN = ("cause", "origin", "state", "subjects", "names")


def sharing(*names: str, user: str | None) -> Tables:
    """Clients that one quota throttles."""
    rows = [row for name in names for row in minutes(f"User:{name}", THROTTLE)]
    throttled = {"throttled_by": RATE, "throttle_time_ms": 9_000.0, "amount": 9}
    of_quota = throttled | {"quota_bucket_user": user, "quota_level": 6 if user is None else 3}
    usage = [
        used(60 * 26, RATE, 2_000.0, principal=f"User:{name}", client_id=name, **of_quota)
        for name in names
    ]
    return among_healthy(*rows) | {"quota_usage": usage}


@cases(
    ("content", "expected"),
    (
        "one quota of two clients",
        sharing("a", "b", user="team"),
        [("quota", f"{RATE} of team", "open", 2, ["a", "b"])],
    ),
    (
        "the default quota",
        sharing("a", user=None),
        [("quota", f"{RATE} of the default", "open", 1, ["a"])],
    ),
    (
        "one slow broker",
        {"request_times": [row for n in "ab" for row in minutes(f"User:{n}", {"local": 400.0})]},
        [("slow_broker", "1", "open", 2, ["a", "b"])],
    ),
    ("nothing", among_healthy(), []),
)
def test_one_cause_is_one_incident(content: Tables, expected: Picked) -> None:
    assert picked(view("incidents", content), *SHOWN) == expected


def test_quotas_of_two_users_are_two_incidents() -> None:
    content = sharing("a", user="a")
    other = sharing("b", user="b")
    merged = {name: [*content[name], *other[name]] for name in content}
    assert len(view("incidents", merged)) == 2


def test_an_incident_has_ended_where_tables_go_on_without_it() -> None:
    content = sharing("a", user="a")
    later = [
        row | {"event_time": row["event_time"].replace(hour=14)}
        for row in minutes("User:later")[: MINUTES - BEGAN]
    ]
    (row,) = view("incidents", content | {"request_times": [*content["request_times"], *later]})
    assert row["state"] == "ended"
    assert (row["until"] - row["since"]).total_seconds() == 60 * (MINUTES - BEGAN)
