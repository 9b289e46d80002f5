"""Sections of conf that results use: lateness, prices, racks, quotas and producer-id quotas."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from quotaflow.pipelines.config.base import (
    LONGEST_S,
    Days,
    Positive,
    PositiveRate,
    Seconds,
    Section,
    bare,
    matches,
)
from quotaflow.udfs.rules import address

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PricesSection(Section):
    """The price of a GiB: moved, the surcharges between racks and of remote reads, and stored.

    Produced and consumed bytes are those of clients. `stored_per_gib_month` is the price of a GiB
    that a replica keeps on a disk for a month of 730 hours (8,760 hours of a year, by 12). What has
    no price adds nothing to a cost. Without any price a cost is null.
    """

    currency: Annotated[str, matches("[A-Z]{3}", "write three letters, such as EUR")] = "USD"
    produced_per_gib: Price | None = None
    consumed_per_gib: Price | None = None
    cross_rack_per_gib: Price | None = None
    remote_read_per_gib: Price | None = None
    stored_per_gib_month: Price | None = None


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
    """How late facts may be and still correct a result, and when a result is final for a plan.

    `task_memory_mb` is the memory of the SQL engine in one task, in MiB; what exceeds it goes to a
    temporary folder. Serverless compute gives a Python task 1 GiB in all.
    """

    max_lateness_s: Seconds = 3_600
    settle_s: Seconds = 30
    max_bytes_per_trigger: Positive = 512 * 1024 * 1024
    task_memory_mb: Annotated[int, Field(ge=128)] = 512


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
    """Producer-id quotas (KIP-936), which Kafka itself does not have, and the rule's windows.

    `quotas` maps a user (alice, not User:alice) to producer ids per second and broker. Without
    `default_quota_per_s` all other users are unlimited. `num_windows` and `window_ms` are the KIP's
    producer.id.quota.window.num and producer.id.quota.window.size.seconds. A filter starts in each
    window, so an id is remembered for half to one and a half windows.

    A plan limits an offender only where its ids do harm. Forecast producer ids may take
    `max_heap_share` of a broker's heap of `broker_heap_bytes`, or `max_heap_bytes` if that is null.
    A plan limits an address that other clients use only if `limited_addresses` has it, and never
    one of `protected_addresses`: both take addresses and networks. With `manage_expiration` a plan
    sets producer.id.expiration.ms.
    """

    default_quota_per_s: PositiveRate | None = None
    quotas: dict[str, PositiveRate] = Field(default_factory=dict)
    num_windows: Positive = 11
    window_ms: Annotated[int, Field(gt=0, le=LONGEST_S * 1_000, multiple_of=1_000)] = 1_000
    filter_items: Positive = 10_000
    filter_false_positive_rate: Annotated[float, Field(gt=0, lt=1)] = 0.001
    broker_heap_bytes: Positive | None = None
    max_heap_share: Annotated[float, Field(gt=0, le=1)] = 0.1
    max_heap_bytes: Positive = 64 * 1024 * 1024
    limited_addresses: list[Addresses] = Field(default_factory=list)
    protected_addresses: list[Addresses] = Field(default_factory=list)
    manage_expiration: bool = False

    @field_validator("quotas")
    @classmethod
    def _by_bare_name(cls, quotas: dict[str, float]) -> dict[str, float]:
        return {bare(user): rate for user, rate in quotas.items()}


class QuotasSection(Section):
    """Client quotas: their windows at the brokers, and how quotas are advised from usage.

    Windows are the broker's quota.window.num and quota.window.size.seconds. A quota is advised from
    the `percentile` (0 to 1) of `advice_days` of windows, with `headroom` on top (0.25: a quarter).
    A plan sets it only for `advised_users` (bare names; * is all). All raised quotas of one kind
    stay within `raise_budget_share` of the capacity of a broker (replication.capacity_bytes_per_s).
    """

    num_windows: Positive = 11
    window_ms: Annotated[int, Field(gt=0, le=LONGEST_S * 1_000, multiple_of=1_000)] = 1_000
    percentile: Annotated[float, Field(gt=0, le=1)] = 0.99
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.25
    advice_days: Days = 7
    advised_users: list[_User] = Field(default_factory=list)
    raise_budget_share: Annotated[float, Field(gt=0, le=1)] = 0.5

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
