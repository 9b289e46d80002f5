"""The pages: names stay text, every query runs, and what cannot be answered is said."""

import gzip
import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest

from quotaflow.pipelines.areas import changes, quotas
from quotaflow.pipelines.areas import why as answer
from quotaflow.pipelines.areas.names import BROKER, GROUP, KINDS, MOVE, TOPIC
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.config.cluster import ClusterSection
from quotaflow.pipelines.errors import QueryError
from quotaflow.pipelines.report.incidents import Card
from quotaflow.pipelines.report.section import ReportSection, text
from quotaflow.pipelines.serve import site as site_module
from quotaflow.pipelines.serve import subjects
from quotaflow.pipelines.serve import tables as tables_module
from quotaflow.pipelines.serve.site import MAX_NAME_CHARS, MAX_PAGES, QuotaflowSite
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import altered, limited, used
from ...schemas.views.test_client_diagnoses import BAD, RATE, among_healthy, minutes
from ...schemas.views.view_tables import make_table, make_tables_and_answers
from ..report.pages import HOSTILE, NAMES, Page, progress
from .markup import Markup
from .serving_pages import CONTENT, get, served, site

NAMED = [
    (("client", "principal")[place % 2], name)
    for place, name in enumerate(NAMES)
    if len(name) <= MAX_NAME_CHARS
]
OTHERS = [(GROUP, HOSTILE), (TOPIC, HOSTILE), (BROKER, "1"), (MOVE, f"{HOSTILE}-0")]
TAGS = {"img", "b"}


@pytest.fixture(autouse=True)
def two_areas(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `why` says is tested elsewhere, and all its areas take a second."""
    monkeypatch.setattr(answer, "AREAS", (quotas, changes))


@pytest.fixture(scope="module")
def pages(filled: Warehouse) -> QuotaflowSite:
    return site(filled)


def test_what_clients_named_stays_text_on_the_page_of_each_name(pages: QuotaflowSite) -> None:
    with served(pages) as url:
        for kind, name in [*NAMED, *OTHERS]:
            answer = get(url, f"/{kind}?name={quote(name)}")
            assert answer.status == 200, (kind, name)
            page = Page(answer.text)
            assert not TAGS & set(page.tags)
            assert Markup(answer.text).problems == []
            assert "not known: " not in page.text.lower(), (kind, name, page.text)


def test_each_kind_of_page_draws_its_rows(pages: QuotaflowSite) -> None:
    def texts(kind: str, name: str) -> Page:
        return Page(pages.answer(f"/{kind}?name={quote(name)}").body.decode())

    client = texts("client", HOSTILE)
    assert client.tags.count("figure") == 3, "what it waited for, quotas, two minutes of traffic"
    assert "For what its requests waited, as a mean of a request" in client.text
    assert "11-21 12:01: broker 9 ms" in client.text
    assert "(50 %) at broker 1: " in client.text
    assert " left" in client.text
    change = "12:00:30 UTC: User:admin set producer_byte_rate of the default user to 9 bytes/s."
    assert client.text.count(change) == 2, "a mark in the chart, and a finding"
    assert "producer_byte_rate 50 % of the limit at 2026-11-21 12:00:00 UTC" in client.text
    assert "in MB/s: no step of 60 s is whole yet" in texts("client", NAMES[2]).text
    assert "Topics by bytes" in client.text
    assert "What is wrong, and why" in client.text
    assert "Positions of groups" in texts(GROUP, HOSTILE).text
    assert {"Clients by bytes", "Positions of groups, the furthest behind first"} <= set(
        texts(TOPIC, HOSTILE).texts
    )
    assert "controller" in texts(BROKER, "1").text
    assert "Moves of replicas" in texts(MOVE, f"{HOSTILE}-0").text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["nobody", "7", "nobody-0", "٣", "-1", "{cluster}' OR true"])
def test_an_unknown_name_is_not_found(pages: QuotaflowSite, kind: str, name: str) -> None:
    answer = pages.answer(f"/{kind}?name={quote(name)}")
    assert answer.status == 404
    assert "figure" not in Page(answer.body.decode()).tags


@pytest.mark.parametrize(
    "target",
    [
        "/nothing",
        "/client",
        "/client?name=",
        f"/client?name={'x' * (MAX_NAME_CHARS + 1)}",
        "/client?" + "a=1&" * 20,
        "/static/../site.py",
        "//evil.example/",
        "/%00",
    ],
)
def test_what_is_no_page_is_not_found(pages: QuotaflowSite, target: str) -> None:
    assert pages.answer(target).status == 404


def test_a_search_has_the_best_match_first_and_bounded_lists(pages: QuotaflowSite) -> None:
    page = Page(pages.answer("/find?q=%20BOLD%20").body.decode())
    assert "%{x}<b>bold</b>&amp;" in page.text
    assert "DROP TABLE" not in page.text
    every = Page(pages.answer("/find").body.decode())
    heads = ["Principals", "Clients", "Groups", "Topics", "Brokers", "Moves"]
    assert [text for text in every.texts if text in heads] == heads
    assert "x" * 100 not in every.text
    assert not TAGS & set(every.tags)
    nothing = Page(pages.answer("/find?q=%25_%27%22%3Cb%3E").body.decode())
    assert "No name of this cluster has that in it" in nothing.text


def test_the_report_leads_to_the_pages_of_names(
    pages: QuotaflowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quotaflow.pipelines.report.section import grid  # noqa: PLC0415

    columns = (text("client", "client_id"), text("quota", "quota_type"))
    names = ("a b&c", "y" * 99, "web-*", "it`s", "`apply`", f"{'z' * 46}…-0")
    rows = [{"client_id": name, "quota_type": "x"} for name in (*names, None)]
    listed = ReportSection("One", grids=(grid("Clients", rows, columns, "None."),))
    monkeypatch.setattr(site_module, "sections", lambda _: [listed])
    page = Page(pages.answer("/").body.decode())
    links = [link for link in page.addresses if link.startswith("/client")]
    assert links == ["/client?name=a+b%26c"]
    assert f"/find?q={'y' * 47}" in page.addresses, "a name that is cut leads to the search"
    assert "/find?q=web-" in page.addresses, "and so does one of several clients"
    assert {"/find?q=it", f"/find?q={'z' * 46}"} <= set(page.addresses), "and one shown otherwise"
    assert "/find?q=" not in page.addresses


def test_pages_have_the_names_of_conf(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "sections", lambda _: [])
    pages = site(filled)
    names = ClusterSection(name="orders", environment="production", owner="ops <b>")
    pages.tables.conf = pages.tables.conf.model_copy(update={"cluster": names})
    report = Page(pages.answer("/").body.decode())
    assert "State of orders" in report.text
    assert "production · owner: ops <b> · cluster id: c1" in report.text
    subject = Page(pages.answer(f"/client?name={quote(HOSTILE)}").body.decode())
    assert "Cluster orders. " in subject.text
    assert "State of cluster c1" in Page(site(filled).answer("/").body.decode()).text


def test_a_file_is_sent_compressed_and_kept(pages: QuotaflowSite) -> None:
    with served(pages) as url:
        plain = get(url, "/static/page.css")
        small = get(url, "/static/page.css", Accept_Encoding="gzip, br").body
        assert gzip.decompress(small).decode() == plain.text
        assert plain.headers["Cache-Control"] == "private, max-age=86400"


def test_an_empty_warehouse_says_what_to_do(tmp_path: object) -> None:
    from quotaflow.pipelines import config  # noqa: PLC0415

    empty = site(Warehouse(config.WarehouseSection(path=f"{tmp_path}/none")))
    with served(empty) as url:
        for path in ("/", "/find", "/client?name=x"):
            answer = get(url, path)
            assert answer.status == 200
            assert "was never made" in Page(answer.text).text
            assert "quotaflow run" in Page(answer.text).text


def test_several_clusters_are_one_sentence(warehouse: Warehouse) -> None:
    rows = [CONTENT["pipeline_progress"][0] | {"cluster_id": name} for name in ("c1", "c2")]
    make_table(warehouse, TABLES["pipeline_progress"], rows)
    answer = site(warehouse).answer("/")
    assert answer.status == 500
    assert "choose one with --cluster" in answer.body.decode()


def wait(pages: QuotaflowSite) -> None:
    """Wait until all is computed that is computed ahead."""
    pages._ahead.submit(lambda: None).result()


def test_a_reader_chooses_the_time(pages: QuotaflowSite) -> None:
    path = f"/client?name={quote(HOSTILE)}"
    day, hour = (Page(pages.answer(path + more).body.decode()) for more in ("", "&since=1h"))
    (first, second) = (re.findall(r"2026-\d\d-(\d\d \d\d):\d\d:\d\d to", each.text)[0]
                       for each in (day, hour))  # fmt: skip
    assert (first, second) == ("20 12", "21 11")
    assert f"/client?{urlencode({'name': HOSTILE})}&since=6h" in day.addresses
    assert pages.answer(f"{path}&since=99d") is pages.answer(path), "other times are ignored"


def test_the_page_behind_a_card_is_computed_ahead(
    pages: QuotaflowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = text("who", "client_id")
    names = (NAMES[2], "x" * 60 + "…")
    cards = [
        Card("slow", 1, text=name, when="", line="", column=column, names=(name,), action="")
        for name in names
    ]
    monkeypatch.setattr(site_module, "sections", lambda _: [])
    monkeypatch.setattr(site_module, "cards", lambda _: cards)
    pages._pages.clear()
    front = Page(pages.answer("/").body.decode())
    wait(pages)
    assert [key.path for key in pages._pages] == ["/", f"/client?{urlencode({'name': NAMES[2]})}"]
    assert f"/client?{urlencode({'name': NAMES[2]})}" in front.addresses
    assert not TAGS & set(front.tags)
    pages._pages.clear()


@pytest.mark.parametrize("key", ["compression.type", "background.threads"])
def test_a_page_marks_the_changes_that_why_names(warehouse: Warehouse, key: str) -> None:
    """A change of its broker that cannot be why a client waits is neither in the text nor drawn."""
    named = {"entity_type": "broker", "entity_name": "1"}
    content = among_healthy(*minutes("User:bad", {"local": 400.0})) | {
        "pipeline_progress": [progress(60 * 30, "in")],
        "quota_usage": [used(60 * 29, RATE, 10.0, **BAD, amount=9)],
        "config_alterations": [
            altered(60 * 24, key, "1", **named),
            limited(60 * 20, RATE, "9", entity_name="bad"),
        ],
    }
    make_tables_and_answers(warehouse, content)
    text = site(warehouse).answer("/client?name=bad").body.decode()
    of_broker, of_quota = (
        f"User:admin set {name} to {value}"
        for name, value in ((f"{key} of broker 1", 1), (f"{RATE} of user bad", "9 bytes/s"))
    )
    shown = [text.count(each) for each in (of_quota, of_broker)]
    assert shown == ([2, 2] if key == "compression.type" else [2, 0])


def test_a_page_is_kept_until_a_table_changes(warehouse: Warehouse) -> None:
    progress = TABLES["pipeline_progress"]
    make_table(warehouse, progress, CONTENT["pipeline_progress"])
    pages = site(warehouse)
    now = pages.tables.now()
    pages.tables.now = lambda: now
    first = pages.answer("/find")
    assert pages.answer("/find") is first
    make_table(warehouse, progress, CONTENT["pipeline_progress"])
    now += timedelta(seconds=3)
    assert pages.answer("/find") is first, "nobody waits for the new one"
    wait(pages)
    second = pages.answer("/find")
    assert second is not first
    now += site_module.MAX_AGE
    assert pages.answer("/find") is not second, "it says how old things are"
    for number in range(MAX_PAGES + 5):
        pages.answer(f"/find?q={number}")
    assert len(pages._pages) == MAX_PAGES


def test_a_query_past_its_time_is_said_on_the_page(
    pages: QuotaflowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Scope.rows

    def slow(scope: Scope, sql: str, **parts: str) -> list[dict[str, object]]:
        if "FROM traffic WHERE" in sql:
            raise QueryError("stopped after 1 s: narrow it")
        return real(scope, sql, **parts)

    monkeypatch.setattr(Scope, "rows", slow)
    pages._pages.clear()
    answer = pages.answer(f"/broker?name={1}")
    pages._pages.clear()
    assert answer.status == 200
    assert "stopped after 1 s" in answer.body.decode()


def test_a_damaged_table_is_said_on_the_page(
    pages: QuotaflowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = answer.why
    damages = ("<b>table requests</b> is damaged",)
    monkeypatch.setattr(subjects, "why", lambda *given: replace(real(*given), damages=damages))
    pages._pages.clear()
    page = pages.answer(f"/client?name={quote(HOSTILE)}").body.decode()
    pages._pages.clear()
    assert "&lt;b&gt;table requests&lt;/b&gt; is damaged" in page


def test_a_page_that_waits_too_long_for_another_says_so(
    pages: QuotaflowSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "_WAIT_S", 0.01)
    with pages.tables.computing():
        answer = pages.answer("/find?q=not%20computed%20yet")
    assert answer.status == 503
    assert "another page is being computed" in answer.body.decode()


def test_queries_end_when_the_server_does(filled: Warehouse) -> None:
    pages = site(filled)
    assert pages.answer("/broker?name=1").status == 200
    pages.tables.stop()
    assert pages.answer("/broker?name=2").status == 500
