"""Sections of conf about fetches."""

from quotaflow.pipelines.section import Positive, Section


class FetchSessions(Section):
    """How long fetch sessions (KIP-227) are followed, and how many.

    One that nobody used for `idle_s` counts as gone. Of each broker's the newest
    `slots_per_broker` are kept; a broker itself keeps 1000, unless it says otherwise
    (max.incremental.fetch.session.cache.slots).
    """

    idle_s: Positive = 3_600
    slots_per_broker: Positive = 2_000
