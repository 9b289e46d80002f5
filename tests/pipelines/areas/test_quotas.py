"""The command that raises a quota is about the client whose wait is diagnosed."""

from pathlib import Path
from typing import Any

from quotaflow.pipelines import config
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, used
from ...schemas.views.view_tables import make_tables
from ..report.pages import scope

RATE = "producer_byte_rate"


def throttled(user: str, throttle_time_ms: float) -> Row:
    others: dict[str, Any] = {"cluster_id": "c1", "principal": f"User:{user}", "client_id": user}
    others |= {"throttled_requests": 9, "throttle_time_ms": throttle_time_ms, "throttled_by": RATE}
    return used(60, RATE, 990.0, **others, quota_bucket_user=user)


def test_the_quota_of_the_diagnosed_client_is_raised_though_others_wait_longer(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    usage = [throttled("search", 90_000.0), throttled("dave", 900.0)]
    make_tables(warehouse, {"quota_usage": usage})
    row = dict.fromkeys(("evidence", "facts", "client_id", "share"))
    row |= {"principal": "User:dave", "cause": "quota", "detail": RATE, "program": "dave"}
    row |= {"symptom": "slow"}
    step = diagnoses.step(scope(warehouse), row)
    assert step
    assert "--entity-name dave" in step
