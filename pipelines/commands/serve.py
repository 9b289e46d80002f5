"""The command serve: the report and a page for each name, for browsers."""

import ipaddress
import ssl
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.config.secrets import key
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.serve.access import Access, Proxies
from quotaflow.pipelines.serve.server import is_running, serving
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables
from quotaflow.pipelines.terminal import output, times

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf

_POLL_S = 0.2

Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="IP",
        help="Address to serve at; one that others reach needs serve.token or serve.proxies.",
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")]
Since = Annotated[
    str,
    typer.Option("--since", metavar="TIME", help="Show this long before the newest event: 6h, 7d."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ID", help="Cluster to show, if the tables have several."),
]


def serve(
    *,
    address: Address = "127.0.0.1",
    port: Port = 9_465,
    since: Since = "1d",
    cluster: Cluster = None,
    conf: options.ConfOptions,
) -> None:
    """Serve the report as a live page, and a page for each name, to browsers.

    Names are clients, principals, groups, topics, brokers and moves; a page says what `quotaflow
    why NAME` says, with charts. Pages update themselves. Needs no JVM, and changes nothing.
    Serves this machine alone, unless --address names another address and conf a serve.token, or
    serve.proxies that sign people in.

    Example: quotaflow serve

    Example: quotaflow serve --address 0.0.0.0 --set serve.token=env:QUOTAFLOW_TOKEN
    """
    lookback = timedelta(seconds=times.seconds(since))
    settings = conf.of_advice()
    access = access_of(settings, address)
    tables = ServedTables(settings, cluster, lookback)
    site = QuotaflowSite(tables, settings.serve.refresh_s)
    with (
        interrupts.noted() as is_interrupted,
        serving(site, (address, port), access, tls_of(settings)) as url,
    ):
        site.ahead(lambda: site.answer("/"))
        until_interrupted(url, is_interrupted)


def until_interrupted(url: str, is_interrupted: Callable[[], bool]) -> None:
    """Say where a server answers, and end the command by Ctrl-C or SIGTERM."""
    output.lines([f"serving at {url} (Ctrl-C ends it)"])
    while not is_interrupted():
        if not is_running():
            raise QuotaflowError(f"the server at {url} has ended by an error: start it again")
        time.sleep(_POLL_S)
    raise typer.Exit(interrupts.EXIT_CODE)


def tls_of(settings: "Conf") -> ssl.SSLContext | None:
    """TLS by the files of conf. Raises ConfigError if they are not a certificate and its key."""
    section = settings.serve
    if section.tls_cert is None:
        return None
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # A key with a password would ask for it at the terminal.
        tls.load_cert_chain(section.tls_cert, section.tls_key, password=str)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(
            f"serve.tls_cert {section.tls_cert} and serve.tls_key {section.tls_key}: {reason}: "
            "write PEM files of a certificate with its chain, and of its key without a password"
        ) from None
    return tls


def access_of(settings: "Conf", address: str) -> "Access":
    """Who may read. Raises ConfigError for an address that everybody reaches, with no bound."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise ConfigError(
            f"--address {address} is no IP address: write 127.0.0.1, 0.0.0.0 or ::"
        ) from None
    section = settings.serve
    reference = section.token
    if reference is None and not section.proxies and not is_loopback:
        raise ConfigError(
            f"--address {address} can be reached from other machines: name a token of 32 bytes or "
            "more, such as --set serve.token=env:QUOTAFLOW_TOKEN, or serve.proxies that sign in"
        )
    token = None if reference is None else key("serve.token", reference)
    proxies = Proxies(
        tuple(map(ipaddress.ip_network, section.proxies)),
        section.user_header.lower(),
        section.groups_header.lower(),
        frozenset(section.groups),
    )
    return Access(token, frozenset(section.hosts), proxies)
