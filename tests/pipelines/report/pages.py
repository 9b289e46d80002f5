"""Rows for reports, and a parser of pages: tags, texts and addresses."""

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.finding import Finding, Problem
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...delta_tables import NOON
from ...rows import Row, at
from ...schemas.views.filled_views import FILLED

NOW = NOON + timedelta(hours=2)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def progress(second: float, outcome: str, rows: int = 5, **others: Any) -> Row:
    """A count of a micro-batch."""
    row = {"cluster_id": "c1", "event_time": at(second), "job": "ingest_request_log"}
    row |= {"query_id": "q", "batch_id": 1, "target": "requests", "outcome": outcome}
    return row | {"row_count": rows} | others


PROGRESS: list[Row] = [
    progress(60, "in", 12, target=None),
    progress(60, "out", 7),
    progress(60, "left_out", 2, target=None, reason="raft"),
    progress(65, "quarantined", 3, reason="not_json"),
    progress(65, "late", job="request_results", target="traffic"),
    progress(70, "in", job="snapshot", query_id="snapshot"),
]
CONTENT: dict[str, list[Row]] = FILLED | {"pipeline_progress": PROGRESS}


def scope(warehouse: Warehouse, cluster_id: str = "c1", **others: Any) -> Scope:
    """The scope of all rows made here."""
    since, until = NOON - timedelta(days=1), at(65)
    times = {"since": since, "until": until, "now": NOW} | others
    # Who may be limited is a decision of conf.
    ids = config.ProducerIdsSection(default_quota_per_s=1.0)
    conf = config.Conf(warehouse=warehouse.conf, producer_ids=ids)
    return Scope(FolderReader(warehouse), cluster_id, **times, conf=conf)


# Names that attack a page, a script, a template, a terminal or a reader.
NAMES = (
    HOSTILE,
    "{{ 7 * 7 }}{% raw %}${1+1}",
    "%{x}<b>bold</b>&amp;",
    "\u202egnp.exe\u2066\x00\x1b[31m",
    "x" * 10_000,
    "`quotaflow apply --yes`",
    "'; DROP TABLE requests; --",
)
_NAMED = {
    "client_id",
    "principal",
    "topic",
    "client_rack",
    "entity_name",
    "quota_bucket_user",
    "rule",
    "group_id",
}
_NAMED |= {"client_software_name", "client_software_version", "quota_bucket_client_id", "unit"}


def hostile(row: Row, place: int) -> Row:
    """The row with a hostile value in each column that a client can choose."""
    name = NAMES[place % len(NAMES)]
    return {key: name if key in _NAMED and value else value for key, value in row.items()}


def alarm(severity: int, text: str, action: str = "") -> Finding:
    """A problem of a kind of its own."""
    problem = Problem(code="made_up", severity=severity)
    return Finding(text=text, problem=problem, next_step=action)


class Page(HTMLParser):
    """The tags, texts and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        if self._in not in {"script", "style"}:
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in = None if tag == self._in else self._in

    @property
    def text(self) -> str:
        """All texts in one line."""
        return " ".join(" ".join(self.texts).split())
