"""Who altered the real cluster's configs and quotas, by its request log."""

import time
from pathlib import Path
from typing import Any

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged
from quotaflow.pipelines.results.declared import result_of

from ..rule_rows import compute
from .drive import parsed
from .quota_levels import LEVELS, limit, set_quotas
from .tables_read import query

TOOL, DEMO = "reassign-partitions-tool", "quotaflow-demo"


def test_who_altered_a_config_last(filled: Path) -> None:
    names = "config_key, operation, config_value, principal, client_id"
    expected = {
        "entity_type = 'topic' AND entity_name = 'bulk'": {
            (f"{side}.replication.throttled.replicas", "DELETE", None, "User:admin", TOOL)
            for side in ("leader", "follower")
        },
        "entity_type = 'topic' AND entity_name = 'orders' AND config_key = 'retention.ms'": {
            ("retention.ms", "DELETE", None, "User:admin", DEMO)
        },
        # Set, and set to what the broker refused, before it was removed.
        "entity_type = 'user' AND entity_name = 'alice' AND entity_client_id IS NULL": {
            ("consumer_byte_rate", "DELETE", None, "User:admin", DEMO)
        },
    }
    sql = f"SELECT {names} FROM config_writers WHERE "
    altered = {
        where: {tuple(row.values()) for row in query(filled, sql + where)} for where in expected
    }
    assert altered == expected


def altering(cluster: LocalCluster, since_ms: float) -> list[dict[str, Any]]:
    """Lines of the logs that alter quotas: of each request, by the broker and by the controller."""
    return [
        line
        for line in logged(cluster)
        if line["ts"] >= since_ms
        and line["r"]["requestHeader"]["requestApiKeyName"] == "ALTER_CLIENT_QUOTAS"
    ]


def test_who_set_quotas_of_every_level_is_in_one_row(cluster: LocalCluster) -> None:
    since_ms, deadline_s = time.time() * 1_000, time.monotonic() + 60
    set_quotas(cluster, 0.0)
    set_quotas(cluster, None)
    while len(altering(cluster, since_ms)) < 4 and time.monotonic() < deadline_s:
        time.sleep(0.2)
    lines = parsed(cluster, altering(cluster, since_ms)).to_pylist()
    rows = compute(result_of("config_alterations"), requests=lines)
    names = ("entity_type", "entity_name", "entity_client_id", "config_key")
    altered = [tuple(row[name] for name in names) for row in rows]
    entities = [
        ("client-id", client_id, None, key) if user is None else ("user", user, client_id, key)
        for (_, key), (user, client_id) in LEVELS.items()
    ]
    assert sorted(altered, key=str) == sorted(entities * 2, key=str)
    values = {(r["operation"], r["config_value"] and float(r["config_value"])) for r in rows}
    assert values == {("SET", limit(*level)) for level in LEVELS} | {("DELETE", None)}
    assert {(r["error_code"], r["principal"], r["client_id"]) for r in rows} == {
        (0, "User:admin", "quotaflow-demo")
    }
