"""Tables and views as a sources.yml of dbt: names, meanings, and how fresh they should be.

Over a folder the sources are those that `ddl --dialect duckdb` makes in DuckDB's schema main.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import QUERY_PROGRESS, REQUESTS
from quotaflow.schemas.view import View

_SOURCE = "quotaflow"
_FOLDER_SCHEMA = "main"
_HEAD = """\
# Sources of dbt 1.10 and later, made by `quotaflow ddl --dbt`. Times are UTC.
"""
# These get rows whenever brokers answer clients. Rows of others are rightly old: snapshots write
# what changed, and answers and results need something to be about.
_STEADY = (REQUESTS.name, "traffic")
_WARN_HOURS, _ERROR_HOURS = 1, 6
_ERROR_FACTOR = 4


def text(names: Iterable[str], conf: Conf) -> str:
    """The file for these tables and views, in the catalog of conf or in DuckDB."""
    source: dict[str, Any] = {
        "name": _SOURCE,
        "description": "What Kafka brokers log and know about their clients, by quotaflow.",
    }
    if conf.warehouse.catalog_schema:
        source["database"], source["schema"] = conf.warehouse.catalog_schema.split(".")
    else:
        source["schema"] = _FOLDER_SCHEMA
    source["tables"] = [_table(name, conf) for name in names]
    content = {"version": 2, "sources": [source]}
    return _HEAD + yaml.safe_dump(content, sort_keys=False, width=100, allow_unicode=True)


def _table(name: str, conf: Conf) -> dict[str, Any]:
    each = TABLES.get(name) or views.load()[name]
    return {
        "name": name,
        "description": each.comment,
        **_freshness(name, conf),
        "columns": list(_columns(each)),
    }


def _columns(each: Table | View) -> Iterator[dict[str, str]]:
    for column in each.columns:
        yield {"name": column.name, "description": column.comment}


def _freshness(name: str, conf: Conf) -> dict[str, Any]:
    if name == QUERY_PROGRESS.name:
        minutes = max(conf.health.max_silence_s // 60, 1)
        warn, error = (minutes, "minute"), (minutes * _ERROR_FACTOR, "minute")
    elif name in _STEADY:
        warn, error = (_WARN_HOURS, "hour"), (_ERROR_HOURS, "hour")
    else:
        return {}
    bounds = {"warn_after": _bound(*warn), "error_after": _bound(*error)}
    return {"config": {"loaded_at_field": TABLES[name].time, "freshness": bounds}}


def _bound(count: int, period: str) -> dict[str, Any]:
    return {"count": count, "period": period}
