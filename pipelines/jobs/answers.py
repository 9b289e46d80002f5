"""Brings answers up to date while jobs run: about once a minute."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.terminal import logs, texts

REFRESH_EVERY_S = 60
_MAX_SHARE = 0.1
"""The part of the time that refreshes may take: on many rows they are less frequent."""


class RegularRefresh:
    """Refreshes the answers of one run, on the run's own thread."""

    def __init__(self, environment: JobEnvironment, report: Callable[[str], None]) -> None:
        self.environment = environment
        self.report = report
        self.due_at = time.monotonic() + REFRESH_EVERY_S

    def refresh_if_due(self) -> None:
        """Refresh if the last time is long enough ago."""
        if time.monotonic() >= self.due_at:
            self.refresh()

    def refresh(self) -> None:
        """Compute each answer whose inputs changed."""
        began = time.monotonic()
        environment = self.environment
        refresh(
            environment.conf.warehouse, lambda: environment.spark, datetime.now(UTC), self.report
        )
        ended = time.monotonic()
        logs.detail(f"answers are up to date after {texts.duration((ended - began) * 1e3)}")
        self.due_at = ended + max(REFRESH_EVERY_S, (ended - began) / _MAX_SHARE)
