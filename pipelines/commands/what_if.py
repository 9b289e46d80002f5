"""The command what-if: replays the past under another quota."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from quotaflow.pipelines.areas import quota_replay
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import output, times
from quotaflow.pipelines.terminal.layout import Layout


def what_if(
    producer_ids_rate: Annotated[
        float,
        typer.Option(
            "--producer-ids-rate", metavar="RATE", help="New ids per second, user and broker."
        ),
    ],
    *,
    principal: Annotated[
        str | None,
        typer.Option(
            "--principal", metavar="NAME", help="Only this principal: User:alice, or alice."
        ),
    ] = None,
    since: options.Since = None,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Replay new producer ids under a producer_ids_rate (KIP-936): who would have waited.

    Needs no JVM. A source that waits requests its next id later, as a throttled client does. All
    sources of a principal on a broker share one token bucket: is_innocent marks sources that would
    not have been throttled alone.

    Example: quotaflow what-if --producer-ids-rate 0.5 --principal User:etl
    """
    start = times.since(since, datetime.now(UTC)) if since else None
    sources = quota_replay.throttled_sources(conf.of_tables(), producer_ids_rate, principal, start)
    rows = (source.row() for source in sources)
    output.write(rows, quota_replay.COLUMNS, layout, by_importance=False)
    for line in quota_replay.summaries(sources):
        output.note(line)
