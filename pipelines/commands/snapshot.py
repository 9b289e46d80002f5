"""The command snapshot: the cluster's own state, as rows of what changed."""

from datetime import UTC, datetime

import typer

from quotaflow.pipelines.commands import options, output


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("snapshot")(snapshot)


def snapshot(conf: options.ConfFile = None, overrides: options.Overrides = None) -> None:
    """Read what the cluster is configured to do, and write what changed since the last time.

    Fills configs (client-metrics resources) and client_subscriptions: which client each of them
    matches, and whether it got what they give. Run it on a schedule, after `quotaflow run`. Needs a
    JDK, as run does; the login needs DESCRIBE_CONFIGS on the cluster.

    Example: quotaflow snapshot
    """
    settings = options.conf(conf, overrides)
    from quotaflow.pipelines.snapshots import take  # noqa: PLC0415  imports pyspark

    rows = take.take(settings, datetime.now(UTC), output.note)
    output.note(f"{rows} rows written")
