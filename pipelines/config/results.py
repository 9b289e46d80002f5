"""Sections of conf that results use: lateness, prices, racks, quotas and producer-id quotas."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from quotaflow.pipelines.config.base import (
    LARGEST,
    LARGEST_MB,
    Days,
    Positive,
    PositiveRate,
    Seconds,
    Section,
    WindowMs,
    Windows,
    bare,
    matches,
)
from quotaflow.udfs.rules import address

Price = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]


class PricesSection(Section):
    """The price of a GiB, 0 or more; docs/questions.md#what-does-each-topic-cost-and-whom has the
    queries.

    Produced and consumed bytes are those of clients. What has no price adds nothing to a cost.
    Without any price a cost is null.
    """

    currency: Annotated[str, matches("[A-Z]{3}", "write three letters, such as EUR")] = "USD"
    """Three capital letters."""
    produced_per_gib: Price | None = None
    """Price of produced bytes."""
    consumed_per_gib: Price | None = None
    """Price of consumed bytes."""
    cross_rack_per_gib: Price | None = None
    """Additional price of bytes between racks."""
    remote_read_per_gib: Price | None = None
    """Additional price of bytes that are read from remote storage (KIP-405)."""
    stored_per_gib_month: Price | None = None
    """Price of a GiB that a replica keeps on a broker's disk for a month. A month has 730 hours
    (8,760 / 12), so an hour costs a 730th. Each replica counts. Segments in remote storage do not.
    """


def _by_network(racks: dict[str, str]) -> dict[str, str]:
    rack_by_network = dict[str, str]()
    for cidr, rack in racks.items():
        network = address.network(cidr)
        if network in rack_by_network:
            raise ValueError(f"{network} is listed twice")
        rack_by_network[network] = rack
    return rack_by_network


Racks = Annotated[dict[str, Annotated[str, Field(min_length=1)]], AfterValidator(_by_network)]
"""Rack by network (CIDR): the narrowest network with a client's address counts."""


CLIENT_ID_RACKS = ("warpstream_az=([^,;& ]+)", "diskless_az=([^,;& ]+)")
"""Client ids that name a rack as WarpStream's and Aiven's clients do."""
_MAX_PATTERN_CHARS = 200


def _regex(pattern: str) -> str:
    """A regular expression of RE2, whose time grows with the length of the text alone."""
    import duckdb  # noqa: PLC0415  it takes a tenth of a second to import

    from quotaflow.udfs.engine.connections import connect  # noqa: PLC0415

    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ValueError(f"{pattern[:20]!r}... has more than {_MAX_PATTERN_CHARS} characters")
    try:
        # A connection of its own: others may read on the one of the process.
        with connect() as connection:
            connection.execute("SELECT regexp_extract('', $1, 1)", [pattern]).fetchall()
        groups = re.compile(pattern).groups
    except (duckdb.Error, re.error):
        groups = 0
    if not groups:
        raise ValueError(
            f"{pattern!r} is no regular expression of RE2 with a group, such as az=([a-z0-9-]+)"
        )
    return pattern


RackPatterns = Annotated[list[Annotated[str, AfterValidator(_regex)]], Field(max_length=10)]
"""Patterns whose first group is the rack in a client id: the first that matches counts."""


class ResultsSection(Section):
    """How late facts may be and still correct a result, and when a result is final for a plan."""

    max_lateness_s: Seconds = 3_600
    """Seconds from a fact to its record; past them it is late and corrects no result. A push older
    than the newest by more than this is not decoded.
    """
    settle_s: Seconds = 30
    """Seconds that a request of the results must last before it is planned."""
    max_bytes_per_trigger: Positive = 512 * 1024 * 1024
    """Approximate bytes of files in one batch of a job that reads a table (docs/scaling.md)."""
    task_memory_mb: Annotated[int, Field(ge=128, le=LARGEST_MB)] = 512
    """Memory of the SQL engine in one task of results or fetches, in MiB; what exceeds it goes to a
    temporary folder. Serverless compute gives a Python task 1 GiB in all.
    """


# Tokens are integer thousandths: a lower rate is 0, and with a higher one sums overflow.
MIN_IDS_PER_S, MAX_IDS_PER_S = 0.001, 1_000_000
_ALL = "*"

_User = Annotated[str, AfterValidator(bare), matches(r"[^\n]+", "write a name, in one line")]


def _addresses(text: str) -> str:
    if "/" in text:
        return address.network(text)
    usual = address.normalized(text)
    if usual is None:
        raise ValueError(f"{text!r} is no IPv4 or IPv6 address or network such as 10.0.0.7")
    return usual


Addresses = Annotated[str, AfterValidator(_addresses)]
"""One address, or a network of them (CIDR)."""


class ProducerIdsSection(Section):
    """Quotas of producer ids (KIP-936), which Kafka does not have, and when a plan limits a source:
    docs/producer_ids.md.
    """

    default_quota_per_s: PositiveRate | None = None
    """New producer ids per second, user and broker; 0.001 to 1,000,000; null: unlimited, as in the
    KIP. Without a quota nobody violates one, and no plan limits anybody for producer ids.
    """
    quotas: dict[str, PositiveRate] = Field(default={})
    """User (alice, not User:alice) to a quota of its own."""
    num_windows: Windows = 11
    """The KIP's `producer.id.quota.window.num`: windows of a rate, and of saved tokens."""
    window_ms: WindowMs = 1_000
    """The KIP's `producer.id.quota.window.size.seconds` in milliseconds, whole seconds. A filter
    starts in each window: an id is remembered for half to one and a half windows.
    """
    filter_items: Annotated[int, Field(gt=0, le=10**9)] = 10_000
    """Capacity of the filter in ids of one user, broker and window: the bound of its memory."""
    filter_false_positive_rate: Annotated[float, Field(gt=0, lt=1)] = 0.001
    """Share of new ids that the full filter takes for known ones; above 0, below 1."""
    broker_heap_bytes: Positive | None = None
    """Bytes of a broker's heap (`-Xmx`), which no broker reports; null: not known."""
    max_heap_share: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of that heap that the forecast of producer ids may take before it is harm; above 0, at
    most 1.
    """
    max_heap_bytes: Positive = 64 * 1024 * 1024
    """The same in bytes, where `broker_heap_bytes` is null."""
    limited_addresses: list[Addresses] = Field(default=[])
    """Addresses and networks such as 10.0.0.0/8 (IPv4 or IPv6, no hosts) whose new connections a
    plan may limit even if other clients use them. A loopback address counts only if it is listed by
    itself.
    """
    protected_addresses: list[Addresses] = Field(default=[])
    """Addresses and networks that no plan limits, such as that of a shipper on a host of its own,
    or of pods whose addresses soon become another's.
    """
    manage_expiration: bool = False
    """`true`: a plan may shorten `producer.id.expiration.ms` of brokers, down to a floor
    (docs/producer_ids.md#what-do-ids-cost-brokers-heap-and-when-should-they-expire).
    """

    @field_validator("quotas")
    @classmethod
    def _by_bare_name(cls, quotas: dict[str, float]) -> dict[str, float]:
        return {bare(user): rate for user, rate in quotas.items()}


class QuotasSection(Section):
    """Client quotas: how brokers measure them, and how quotas are advised from usage
    (docs/quotas.md).
    """

    num_windows: Windows = 11
    """The brokers' `quota.window.num`."""
    window_ms: WindowMs = 1_000
    """The brokers' `quota.window.size.seconds`, in milliseconds."""
    percentile: Annotated[float, Field(gt=0, le=1)] = 0.99
    """Percentile of a user's windows, at the broker with the highest usage, from which a quota is
    advised; above 0, at most 1.
    """
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.25
    """Share that is added on top (0.25: a quarter); 0 to 10."""
    advice_days: Days = 7
    """Days of windows that the advice uses."""
    advised_users: list[_User] = Field(default=[])
    """Users (bare names; `*` is all) for whom a plan asks for the advised quota."""
    raise_budget_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the capacity of the smallest broker (`replication.capacity_bytes_per_s`) that all
    raised byte quotas of one kind may sum up to; above 0, at most 1. Without a capacity no quota is
    raised.
    """

    @field_validator("advised_users")
    @classmethod
    def _all_or_some(cls, users: list[str]) -> list[str]:
        if _ALL in users and len(users) > 1:
            raise ValueError(f"{_ALL} is all users: write ['{_ALL}'], or leave it out")
        return users

    @property
    def rate_period_s(self) -> int:
        """The rate period: how long a rate is measured over, in seconds."""
        return self.num_windows * self.window_ms // 1_000

    @property
    def refill_s(self) -> int:
        """The time whose quota brokers let through at once: all windows but one, in seconds."""
        return self.rate_period_s - self.window_ms // 1_000
