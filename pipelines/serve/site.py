"""The pages by their paths, each computed once for each version of the tables."""

import gzip
import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from quotaflow.pipelines.areas import names
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.subject import UnknownNameError
from quotaflow.pipelines.errors import NeverMadeError, QuotaflowError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.report import templates
from quotaflow.pipelines.report.first_screen import blocks, first_screen
from quotaflow.pipelines.report.head import head
from quotaflow.pipelines.report.incidents import MAX_CARDS, Card, cards
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.serve import subjects
from quotaflow.pipelines.serve.server import LOGIN, Response
from quotaflow.pipelines.serve.tables import BusyError, ServedTables, Versions
from quotaflow.pipelines.terminal import texts

if TYPE_CHECKING:
    from quotaflow.pipelines.report.section import GridColumn

MAX_NAME_CHARS = 1_000
"""A name that is longer has no page: no browser's address is for it."""
MAX_PAGES = 64
MAX_AGE = timedelta(minutes=5)
"""A page is computed again after this time too: it says how old things are."""
SINCE = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
}
"""The times that a reader can choose, before the newest event."""

_FIND = "/find"
_STATIC = {
    "page.css": "text/css",
    "serve.css": "text/css",
    "serve.js": "text/javascript",
    "sign_in.js": "text/javascript",
}
_LEVEL = 6
_FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}
_UNPRINTED = "\N{REPLACEMENT CHARACTER}"
_SHOWN_OTHERWISE = re.compile("[…*']")
"""Where a name is cut or of several clients, and what a backtick of it is shown as."""


class _Key(NamedTuple):
    path: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A page with the versions and the time that it was computed of."""

    response: Response
    versions: Versions
    made_at: datetime


def path_of(kind: str, name: str) -> str:
    """The path of a name's page; empty if it has none."""
    return f"/{kind}?{urlencode({'name': name})}" if 0 < len(name) <= MAX_NAME_CHARS else ""


def _of_cell(column: "GridColumn", cell: str) -> str:
    """The page of a cell, or the search if the cell may not be the whole name; empty if neither."""
    if not column.page_kind or cell == texts.NOT_KNOWN or _UNPRINTED in cell:
        return ""
    start = _SHOWN_OTHERWISE.split(cell, maxsplit=1)[0]
    if start != cell:
        return f"{_FIND}?{urlencode({'q': start})}" if start else ""
    return path_of(column.page_kind, cell)


@dataclass
class QuotaflowSite:
    """Every page, and the files that they load."""

    tables: ServedTables
    refresh_s: int
    _pages: "OrderedDict[_Key, _Kept]" = field(default_factory=OrderedDict)
    _keeping: threading.Lock = field(default_factory=threading.Lock)
    _ahead: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "ahead"))
    _environment: Any = field(default=None)
    _static: dict[str, Response] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read templates and files. Raises MissingToolError without jinja2."""
        self._environment = templates.environment(_of_cell, __package__)
        files = {name: templates.read(name, __package__) for name in _STATIC}
        for name, text in files.items():
            body = text.encode()
            tag = hashlib.sha256(body).hexdigest()[:16]
            kind = f"{_STATIC[name]}; charset=utf-8"
            small = gzip.compress(body, _LEVEL)
            self._static[name] = Response(body, HTTPStatus.OK, kind, tag, small, _FOR_A_DAY)
        self._environment.globals.update(
            path_of=path_of,
            static=lambda name: f"/static/{name}?{self._static[name].tag}",
            refresh_s=self.refresh_s,
            since_of=tuple(SINCE),
        )

    def answer(self, target: str) -> Response:
        """The answer to a path with its query."""
        parts = urlsplit(f"/{target.lstrip('/')}")
        if parts.path.startswith("/static/"):
            file = self._static.get(parts.path.removeprefix("/static/"))
            return file or self._failed(HTTPStatus.NOT_FOUND, "There is no such file.")
        query = _query(parts.query)
        since = query.get("since", "") if query.get("since") in SINCE else ""
        if parts.path == "/":
            return self._kept(_Key("/", since), self._report)
        if parts.path == _FIND:
            text = query.get("q", "")[:MAX_NAME_CHARS]
            return self._kept(_Key(f"{_FIND}?{text}"), lambda scope: self._find(scope, text))
        kind, name = parts.path.removeprefix("/"), query.get("name", "")
        if kind in names.KINDS and path_of(kind, name):
            return self._named(kind, name, since)
        return self._failed(HTTPStatus.NOT_FOUND, "There is no such page: search for a name.")

    def sign_in(self) -> Response:
        """The page that asks for the token."""
        return self._page("sign_in.html.j2", HTTPStatus.UNAUTHORIZED, login=LOGIN)

    def is_ready(self) -> bool:
        """Whether the place of the tables can be read."""
        try:
            self.tables.versions()
        except QuotaflowError:
            return False
        return True

    def stop(self) -> None:
        """End the query that runs; every later one fails at once."""
        self.tables.stop()

    def _named(self, kind: str, name: str, since: str = "") -> Response:
        path = path_of(kind, name)
        return self._kept(_Key(path, since), lambda scope: self._subject(scope, kind, name, path))

    def ahead(self, work: Callable[[], object]) -> None:
        """Do it in a thread of its own, after what else was to be done ahead."""
        self._ahead.submit(work)

    def _kept(self, key: _Key, make: Callable[[Scope], Response]) -> Response:
        """A page as it was computed last, for MAX_AGE; once its tables changed it is renewed.

        Who asks meanwhile gets the last one, and news by the script of the page.
        """
        try:
            return self._last(key, make) or self._computed(key, make)
        except NeverMadeError as error:
            return self._empty(error)
        except UnknownNameError as error:
            return self._failed(HTTPStatus.NOT_FOUND, f"{error}.")
        except BusyError as error:
            return self._failed(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}.")
        except QuotaflowError as error:
            return self._failed(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}.")

    def _last(self, key: _Key, make: Callable[[Scope], Response]) -> Response | None:
        versions = self.tables.versions()
        kept = self._young(key)
        if kept is None:
            return None
        if kept.versions != versions:
            self.ahead(lambda: self._renewed(key, make))
        return kept.response

    def _renewed(self, key: _Key, make: Callable[[Scope], Response]) -> None:
        with suppress(QuotaflowError):
            self._computed(key, make)

    def _computed(self, key: _Key, make: Callable[[Scope], Response]) -> Response:
        with self.tables.computing():
            versions = self.tables.versions()
            # Another thread may have computed it meanwhile.
            kept = self._young(key)
            if kept is not None and kept.versions == versions:
                return kept.response
            self.tables.renew_for(versions)
            response = self.tables.answer(make, SINCE.get(key.since))
            self._keep(key, _Kept(response, versions, self.tables.now()))
            return response

    def _young(self, key: _Key) -> _Kept | None:
        with self._keeping:
            kept = self._pages.get(key)
            if kept is None or self.tables.now() - kept.made_at >= MAX_AGE:
                return None
            self._pages.move_to_end(key)
            return kept

    def _keep(self, key: _Key, kept: _Kept) -> None:
        with self._keeping:
            self._pages[key] = kept
            self._pages.move_to_end(key)
            while len(self._pages) > MAX_PAGES:
                self._pages.popitem(last=False)

    def _report(self, scope: Scope) -> Response:
        every, incidents = sections(scope), cards(scope)
        for card in incidents[:MAX_CARDS]:
            self._look_ahead(card)
        return self._page(
            "report.html.j2",
            head=head(scope),
            sections=every,
            path="/",
            shown=first_screen(every, blocks(scope, every), incidents),
        )

    def _look_ahead(self, card: Card) -> None:
        """Compute the page that a reader of a card is likely to ask for."""
        kind, name = card.column.page_kind, next(iter(card.names), "")
        if _of_cell(card.column, name).startswith(f"/{kind}"):
            self.ahead(lambda: self._named(kind, name))

    def _find(self, scope: Scope, text: str) -> Response:
        return self._page("find.html.j2", head=head(scope), q=text, kinds=names.find(scope, text))

    def _subject(self, scope: Scope, kind: str, name: str, path: str) -> Response:
        page = subjects.page(scope, kind, name)
        return self._page(
            "subject.html.j2",
            head=head(scope),
            kind=kind,
            name=texts.listed(name, texts.SENTENCE_CHARS),
            page=page,
            path=path,
        )

    def _empty(self, error: NeverMadeError) -> Response:
        """What to do first, where a table was never made."""
        step = fillers.hint(error.table)
        return self._page("message.html.j2", title="Nothing yet", text=f"{error}: {step}.")

    def _failed(self, status: HTTPStatus, text: str) -> Response:
        shown = texts.listed(text, texts.SENTENCE_CHARS)
        return self._page("message.html.j2", status, title=status.phrase, text=shown)

    def _page(
        self, template: str, status: HTTPStatus = HTTPStatus.OK, **values: object
    ) -> Response:
        tag = secrets.token_hex(8)
        text = self._environment.get_template(template).render(
            {"q": "", "path": "", "tag": tag, "head": None} | values
        )
        return Response(text.encode(errors="replace"), status, tag=tag)


def _query(text: str) -> dict[str, str]:
    """The parameters of a query, each once."""
    try:
        return {name: values[0] for name, values in parse_qs(text, max_num_fields=10).items()}
    except ValueError:
        return {}
