"""Brings answers, and alerts on rows, up to date while jobs run: about once a minute."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.results import row_alerts
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.terminal import logs, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFRESH_EVERY_S = 60
_MAX_SHARE = 0.1
"""The part of the time that refreshes may take: on many rows they are less frequent."""


class RegularRefresh:
    """Refreshes the answers and alerts of one run, on the run's own thread.

    Raises ConfigError for a rule of conf that can never be evaluated.
    """

    def __init__(self, environment: JobEnvironment, report: Callable[[str], None]) -> None:
        row_alerts.check(environment.conf.alerts)
        self.environment = environment
        self.report = report
        self.due_at = time.monotonic() + REFRESH_EVERY_S

    def refresh_if_due(self) -> None:
        """Refresh if the last time is long enough ago."""
        if time.monotonic() >= self.due_at:
            self.refresh()

    def refresh(self) -> None:
        """Compute each answer whose inputs changed, then alerts on rows."""
        began = time.monotonic()
        conf = self.environment.conf

        def session() -> "SparkSession":
            return self.environment.spark

        refresh(conf.warehouse, session, datetime.now(UTC), self.report)
        row_alerts.watch(
            conf.alerts,
            self.environment.warehouse,
            session,
            cluster_id=conf.kafka.cluster_id,
            now=datetime.now(UTC),
            report=self.report,
        )
        ended = time.monotonic()
        logs.detail(f"answers are up to date after {texts.duration((ended - began) * 1e3)}")
        self.due_at = ended + max(REFRESH_EVERY_S, (ended - began) / _MAX_SHARE)
