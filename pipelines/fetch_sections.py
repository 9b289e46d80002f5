"""Sections of conf about fetches."""

from quotaflow.pipelines.section import Positive, Section


class FetchSessions(Section):
    """How long fetch sessions (KIP-227) are followed, and how many.

    One that nobody used for `idle_s` counts as gone: a broker drops it as late as it needs its
    slot. Of each broker's the newest `slots_per_broker` are kept; max.incremental.fetch.session.
    cache.slots is 1000 by default.
    """

    idle_s: Positive = 3_600
    slots_per_broker: Positive = 2_000
