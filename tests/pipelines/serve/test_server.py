"""Who gets an answer of the server, and which headers each answer has."""

import socket
from ipaddress import IPv4Network, ip_network
from urllib.parse import urlsplit

import pytest
import uvicorn
from pydantic import ValidationError

from quotaflow.pipelines.commands.serve import until_interrupted
from quotaflow.pipelines.config import ServeSection
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.serve.access import Access, Proxies
from quotaflow.pipelines.serve.server import LOGIN, serving

from ...cases import cases
from .serving_pages import HIDDEN, Fixed, get, served

TOKEN = "t" * 32


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9465", 200),
        ("localhost:1", 200),
        ("[::1]:9465", 200),
        ("10.0.0.7", 200),
        ("pages.example", 200),
        ("attacker.example", 403),
        ("127.0.0.1.attacker.example", 403),
        ("pages.example.attacker.example:80", 403),
        ("", 403),
        ("[", 403),
    ],
)
def test_a_name_that_is_not_ours_gets_nothing(host: str, status: int) -> None:
    with served(Fixed(), Access(hosts=frozenset({"pages.example"}))) as url:
        answer = get(url, "/x", Host=host)
        assert answer.status == status
        assert (HIDDEN in answer.text) == (status == 200)


@pytest.mark.parametrize(
    ("site", "destination", "status"),
    [
        ("cross-site", "image", 403),
        ("same-site", "iframe", 403),
        ("cross-site", "document", 200),
        ("same-origin", "empty", 200),
    ],
)
def test_other_sites_link_to_pages_and_embed_none(site: str, destination: str, status: int) -> None:
    with served(Fixed()) as url:
        answer = get(url, Sec_Fetch_Site=site, Sec_Fetch_Dest=destination)
        assert answer.status == status


def test_without_the_token_nothing_of_the_tables_is_sent() -> None:
    with served(Fixed(), Access(TOKEN.encode())) as url:
        wrong = ("", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer \xff")
        for sent in wrong:
            for path in ("/", "/client?name=x", "/static/serve.js", LOGIN):
                answer = get(url, path, Authorization=sent)
                assert answer.status in {200, 401}
                assert HIDDEN not in answer.text
                assert "Set-Cookie" not in answer.headers
        for sent in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
            assert HIDDEN in get(url, Authorization=sent).text


def test_the_token_is_sent_once_and_a_cookie_takes_its_place() -> None:
    access = Access(TOKEN.encode())
    with served(Fixed(), access) as url:
        signed_in = get(url, LOGIN, Authorization=f"Bearer {TOKEN}")
        assert signed_in.status == 204
        cookie, *flags = signed_in.headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict"} <= set(flags)
        assert TOKEN not in cookie
        assert HIDDEN in get(url, Cookie=cookie).text
        for wrong in (f"{cookie}x", "quotaflow=", f"quotaflow={TOKEN}", "quotaflow=\xff", ";=;"):
            assert HIDDEN not in get(url, Cookie=wrong).text
    with served(Fixed(), Access(TOKEN.encode())) as url:
        assert HIDDEN not in get(url, Cookie=cookie).text, "it ends with the process"
    assert TOKEN not in repr(access)


LOOPBACK = (ip_network("127.0.0.0/8"),)
ELSEWHERE = (ip_network("10.0.0.5/32"), ip_network("::1/128"))


@cases(
    ("networks", "headers", "status"),
    ("a user", LOOPBACK, {"X_User": "ann", "X_Teams": "sales, sre"}, 200),
    ("a user of another team", LOOPBACK, {"X_User": "bob", "X_Teams": "sre2,sales"}, 403),
    ("a user without a team", LOOPBACK, {"X_User": "bob"}, 403),
    ("no user", LOOPBACK, {"X_Teams": "sre"}, 401),
    ("an empty user", LOOPBACK, {"X_User": " ", "X_Teams": "sre"}, 401),
    ("a user that no proxy names", ELSEWHERE, {"X_User": "ann", "X_Teams": "sre"}, 401),
    ("the token", ELSEWHERE, {"Authorization": f"Bearer {TOKEN}"}, 200),
)
def test_a_proxy_names_who_reads(
    networks: tuple[IPv4Network, ...], headers: dict[str, str], status: int
) -> None:
    proxies = Proxies(networks, "x-user", "x-teams", frozenset({"sre", ""}))
    with served(Fixed(), Access(TOKEN.encode(), proxies=proxies)) as url:
        answer = get(url, **headers)
        assert answer.status == status
        assert (HIDDEN in answer.text) == (status == 200)


def test_with_proxies_alone_nobody_else_reads() -> None:
    with served(Fixed(), Access(proxies=Proxies(ELSEWHERE, "x-user"))) as url:
        assert get(url, X_User="ann").status == 401
        assert get(url, Cookie="quotaflow=", Authorization="Bearer ").status == 401


def test_a_user_that_is_named_twice_does_not_count() -> None:
    with served(Fixed(), Access(proxies=Proxies(LOOPBACK, "x-user"))) as url:
        assert get(url, X_User="ann").status == 200
        assert get(url, X_User="ann", x_user="bob").status == 401


def test_a_proxy_says_that_a_browser_has_tls() -> None:
    sent = {"Authorization": f"Bearer {TOKEN}", "X_Forwarded_Proto": "https"}
    for networks, secure in ((LOOPBACK, True), (ELSEWHERE, False)):
        access = Access(TOKEN.encode(), proxies=Proxies(networks, "x-user"))
        with served(Fixed(), access) as url:
            cookie = get(url, LOGIN, **sent).headers["Set-Cookie"]
            assert cookie.endswith("; Secure") == secure


def test_who_watches_the_process_needs_no_token_and_gets_no_fact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served(Fixed(), Access(TOKEN.encode())) as url:
        assert [(get(url, path).status, get(url, path).text) for path in ("/health", "/ready")] == [
            (200, "OK\n")
        ] * 2
        monkeypatch.setattr(Fixed, "is_ready", lambda _: False)
        broken = get(url, "/ready")
        assert (broken.status, broken.headers["Retry-After"]) == (503, "5")
        assert broken.text == "Service Unavailable\n"
        assert get(url, "/health").status == 200


def test_it_takes_no_other_method() -> None:
    with served(Fixed()) as url:
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
            answer = get(url, method=method)
            assert (answer.status, answer.headers["Allow"]) == (405, "GET")
        assert get(url, method="<b>").status in {400, 501}
        assert "<b>" not in get(url, method="<b>").text


def test_every_answer_forbids_other_sources_and_is_not_kept() -> None:
    with served(Fixed()) as url:
        for answer in (get(url), get(url, Host="x.example"), get(url, method="POST")):
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; ")
            assert "unsafe-eval" not in policy
            assert "http" not in policy
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert "Server" not in answer.headers


def test_what_a_browser_has_is_not_sent_again() -> None:
    with served(Fixed()) as url:
        tag = get(url).headers["ETag"]
        again = get(url, If_None_Match=tag)
        assert (again.status, again.text) == (304, "")
        assert get(url, If_None_Match='"old"').status == 200


def test_a_client_that_sends_nothing_does_not_keep_it_from_ending() -> None:
    with served(Fixed()) as url:
        parts = urlsplit(url)
        silent = socket.create_connection((parts.hostname, parts.port), timeout=5)
        assert get(url).status == 200
    with silent:
        assert silent.recv(1) == b""


def test_a_group_of_conf_has_a_name() -> None:
    for name in ("", " ", " sre", "sre,ops"):
        with pytest.raises(ValidationError, match="write the name of a group"):
            ServeSection(groups=[name])
    assert ServeSection(groups=["Site Reliability", "x"]).groups == ["Site Reliability", "x"]


def test_an_end_of_the_server_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failed(*_: object) -> None:
        raise RuntimeError("no loop")

    monkeypatch.setattr(uvicorn.Server, "serve", failed)
    with pytest.raises(QuotaflowError, match="no loop"), served(Fixed()):
        pass
    with pytest.raises(QuotaflowError, match="has ended"):
        until_interrupted("http://localhost/", lambda: False)


def test_an_address_in_use_is_one_error() -> None:
    with served(Fixed()) as url:
        port = urlsplit(url).port or 0
        other = serving(Fixed(), ("127.0.0.1", port), Access())
        with pytest.raises(ConfigError, match="give another --port"), other:
            pass
