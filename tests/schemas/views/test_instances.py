from ...rows import INSTANCE, at, gauge, push
from .view_tables import picked, view

REQUEST = {**INSTANCE, "event_time": at(0), "error_code": 0, "push_interval_ms": 10_000}
OTHER = {"client_instance_id": "i2", "client_id": "billing"}


def test_who_is_behind_an_instance_and_how_it_ended() -> None:
    in_group = {"group_id": "g", "client_rack": "az-a"}
    pushed = [gauge(10, "consumer.a.avg", 1.0), gauge(10, "consumer.b.avg", 2.0, **in_group)]
    pushed.append(gauge(10, "a", 1.0, client_instance_id=None, transactional_id="nobody's"))
    pushed.append(gauge(10, "admin.client.connection.count", 1.0, **OTHER))
    pushed.append(gauge(10, "stream.client.state", 2.0, **OTHER, application_id="shop"))
    contacts = [push(10), push(14, broker_id=2, terminating=True)]
    requests = [REQUEST, REQUEST | OTHER | {"event_time": at(12)}]
    content = {
        "client_metrics": pushed,
        "telemetry_pushes": contacts,
        "telemetry_subscriptions": requests,
    }
    actual = view("client_instances ORDER BY client_instance_id", content)
    names = ("client_instance_id", "client_id", "group_id", "client_rack", "transactional_id")
    assert picked(actual, *names) == [
        ("i1", "orders", "g", "az-a", None),
        ("i2", "billing", None, None, None),
    ]
    assert picked(actual, "client_kind", "application_id") == [
        ("consumer", None),
        ("admin", "shop"),
    ]
    assert picked(actual, "first_seen", "last_seen", "ended", "broker_ids") == [
        (at(0), at(14), "terminated", [1, 2]),
        (at(12), at(12), None, [1]),
    ]
