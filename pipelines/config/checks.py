"""Sections of conf about health and quality checks."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.config.base import Positive, Section

Share = Annotated[float, Field(ge=0, le=1)]


class HealthSection(Section):
    """From when on `quotaflow status` calls something unwell, and `doctor` warns.

    A job that did not look at its source for `max_silence_s`; whose facts wait unread, or whose
    topic has records to read, for `max_behind_s`; of whose rows in its last hour of work more than
    this share went to quarantine or came too late; a disk with less than `min_free_share` free.
    """

    max_silence_s: Positive = 1_800
    max_behind_s: Positive = 1_800
    max_quarantined_share: Share = 0.01
    max_late_share: Share = 0.05
    min_free_share: Share = 0.1


class QualitySection(Section):
    """Where `quotaflow check` writes its pages, and whether a plan needs tables that were checked.

    `data_docs` is a folder, beside the tables where conf names none. With `required` a plan takes
    rows only where every table they stand on was checked; else one that never was is no obstacle.
    """

    data_docs: str | None = None
    required: bool = False
