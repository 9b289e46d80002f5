"""The command what-if: replays the past under another quota."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from quotaflow.pipelines.areas import byte_quota_replay, quota_replay
from quotaflow.pipelines.areas.replayed_quota import CONSUMER, PRODUCER, ReplayedQuota
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output, times
from quotaflow.pipelines.terminal.layout import Layout

_Rate = float | None


class Replayed(StrEnum):
    """What is replayed."""

    PRODUCER_IDS = "producer-ids"
    QUOTA = "quota"


_What = Annotated[
    Replayed, typer.Argument(metavar="[WHAT]", help="producer-ids (default) or quota.")
]
_ProducerIds = Annotated[
    _Rate,
    typer.Option(
        "--producer-ids-rate", metavar="RATE", help="New ids per second, user and broker."
    ),
]
_Producer = Annotated[
    _Rate,
    typer.Option(
        "--producer-byte-rate", metavar="RATE", help="With quota: bytes per second and broker."
    ),
]
_Consumer = Annotated[
    _Rate,
    typer.Option(
        "--consumer-byte-rate",
        metavar="RATE",
        help="With quota: bytes per second of fetches and broker.",
    ),
]
_User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="With quota: its user.")]
_ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="With quota: its client id.")
]
_Principal = Annotated[
    str | None,
    typer.Option("--principal", metavar="NAME", help="Only this principal: User:alice, or alice."),
]


def what_if(
    replayed: _What = Replayed.PRODUCER_IDS,
    *,
    producer_ids_rate: _ProducerIds = None,
    producer_byte_rate: _Producer = None,
    consumer_byte_rate: _Consumer = None,
    user: _User = None,
    client_id: _ClientId = None,
    principal: _Principal = None,
    since: options.Since = None,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Replay the past under another quota: who would have waited, and how long.

    The action quota replays the requests of the last day in the tables, or from --since on, that
    would share a quota of a user, of a client id, or of both (KIP-13). It prints each client with
    its throttles before and after. A broker is replayed with the arithmetic of Kafka's own classes,
    on the bytes of records, which are less than brokers charge. Each client
    sends as long after an answer as it did then; whether it would send more is not known.

    Without an action new producer ids are replayed under a producer_ids_rate (KIP-936). A source
    that waits requests its next id later, as a throttled client does. All sources of a principal on
    a broker share one token bucket: is_innocent marks sources that would not have been throttled
    alone.

    Needs no JVM where the tables are in a folder.

    Example: quotaflow what-if quota --user dave --producer-byte-rate 40000

    Example: quotaflow what-if --producer-ids-rate 0.5 --principal User:etl
    """
    start = times.since(since, datetime.now(UTC)) if since else None
    if replayed is Replayed.QUOTA:
        _refuse("quota", ("--producer-ids-rate", producer_ids_rate), ("--principal", principal))
        other = _replayed_quota(producer_byte_rate, consumer_byte_rate, user, client_id)
        _of_quota(conf, other, start, layout)
        return
    rates = {"--producer-byte-rate": producer_byte_rate, "--consumer-byte-rate": consumer_byte_rate}
    _refuse("producer-ids", *rates.items(), ("--user", user), ("--client-id", client_id))
    if producer_ids_rate is None:
        raise ConfigError("which rate? Name --producer-ids-rate, or begin with: what-if quota")
    _of_producer_ids(conf, producer_ids_rate, principal, start, layout)


def _of_producer_ids(
    conf: options.ConfOptions,
    rate: float,
    principal: str | None,
    start: datetime | None,
    layout: Layout,
) -> None:
    sources = quota_replay.throttled_sources(conf.of_tables(), rate, principal, start)
    rows = (source.row() for source in sources)
    output.write(rows, quota_replay.COLUMNS, layout, by_importance=False)
    for line in quota_replay.summaries(sources):
        output.note(line)


def _of_quota(
    conf: options.ConfOptions, other: ReplayedQuota, start: datetime | None, layout: Layout
) -> None:
    done = byte_quota_replay.replayed(conf.of_tables(), other, start)
    output.write(iter(done.rows), byte_quota_replay.COLUMNS, layout, by_importance=False)
    for line in byte_quota_replay.summary(other, done):
        output.note(line)


def _replayed_quota(
    producer: float | None, consumer: float | None, user: str | None, client_id: str | None
) -> ReplayedQuota:
    if (producer is None) == (consumer is None):
        raise ConfigError("name one of --producer-byte-rate and --consumer-byte-rate")
    if producer is not None:
        return ReplayedQuota(PRODUCER, producer, user, client_id)
    assert consumer is not None
    return ReplayedQuota(CONSUMER, consumer, user, client_id)


def _refuse(action: str, *given: tuple[str, object]) -> None:
    for name, value in given:
        if value is not None:
            raise ConfigError(f"{name} does not go with {action}")
