"""What reading commands print on machines of other time zones: a process for each zone.

    python -m tests.pipelines.commands.zone_answers WAREHOUSE OUT ZONE [ZONE ...]

Libraries read the zone of the machine once, so a zone needs a process of its own. All modules are
imported once, before the processes part. The clock stands still, so that ages are the same.
"""

import contextlib
import datetime as of_datetime
import io
import json
import os
import pkgutil
import secrets
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from pathlib import Path
from typing import Any

from quotaflow import pipelines
from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables

NOW = datetime(2026, 11, 21, 14, tzinfo=UTC)
"""Two hours after noon of the rows that tests fill tables with."""

_BY_HOUR = (
    *("traffic_by_hour", "rack_traffic_by_hour", "storage_by_hour"),
    *("remote_reads_by_hour", "share_group_health", "lag_by_hour"),
    *("slowest_brokers", "telemetry_cost", "throttled_clients"),
)
_HOURS = " UNION ALL ".join(
    f"SELECT '{view}' AS of, hour, count(*) AS n FROM {view} GROUP BY hour" for view in _BY_HOUR
)
COMMANDS = (
    ["tables", "--json"],
    ["describe", "requests"],
    ["show", "requests", "--since", "2026-11-21T12:00:06"],
    ["show", "requests", "--since", "17:31:06+05:30", "--json"],
    ["show", "requests", "--where", "event_time < TIMESTAMP '2026-11-21 12:01:00'", "--csv"],
    ["sql", f"SELECT *, CAST(hour AS VARCHAR) AS text FROM ({_HOURS}) ORDER BY ALL", "--json"],
    ["why", "alice", "--at", "2026-11-21T13:01:10+01:00", "--for", "1h"],
    ["what-if", "--producer-ids-rate", "0.01", "--since", "2026-11-21T12:00:01"],
    ["status", "--json"],
    ["report", "--out", "-"],
)
PAGES = ("/broker?name=1", "/find?q=alice")


class _Clock(type):
    """Other times are of the class that stands behind the still one."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class _Still(datetime, metaclass=_Clock):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


def stand_still() -> None:
    """Let every module of the product take the same time for now, and see the same disk."""
    for module in pkgutil.walk_packages(pipelines.__path__, "quotaflow.pipelines."):
        import_module(module.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("quotaflow.") and vars(module).get("datetime") is of_datetime.datetime:
            vars(module)["datetime"] = _Still
    for owner, name, still in (
        (health, "free_shares", lambda _: {"tables": 0.5}),
        (secrets, "token_hex", lambda _: "tag"),
    ):
        assert name in vars(owner), name
        vars(owner)[name] = still


def answers(path: str) -> Iterator[tuple[str, tuple[int, str]]]:
    """Each command or page, and what it prints."""
    warehouse = ("--set", f"warehouse.path={path}")
    for command in COMMANDS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = execute([*command, *warehouse])
        yield " ".join(command), (code, printed.getvalue())
    conf = config.Conf(warehouse=config.WarehouseSection(path=path))
    pages = QuotaflowSite(ServedTables(conf, None, timedelta(days=1), lambda: NOW), 30)
    for page in PAGES:
        answer = pages.answer(page)
        yield page, (answer.status, answer.body.decode())


def _in_zone(zone: str, path: str, out: Path) -> int:
    child = os.fork()
    if child:
        return child
    code: Any = 1
    try:
        os.environ["TZ"] = zone
        time.tzset()
        out.write_text(json.dumps(dict(answers(path))), encoding="utf-8")
        code = 0
    finally:
        os._exit(code)


def main(path: str, out: str, *zones: str) -> int:
    """Write what is printed in each zone to OUT/PLACE.json; returns 0 if all did."""
    stand_still()
    children = [_in_zone(zone, path, Path(out, f"{n}.json")) for n, zone in enumerate(zones)]
    ended = [os.waitpid(child, 0)[1] for child in children]
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
