"""Reads that go wrong (KIP-392): faults, loops, resets, and followers that lag."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import FACT, PROBLEM, Finding, Row, client_text
from quotaflow.pipelines.areas.scope import Scope

NAME = "read_problems"
TABLES = ("read_problems", "fetch_faults", "offset_resets", "lagging_reads")

_PROBLEMS = (
    "SELECT * FROM read_problems WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) "
    "AND first_seen < {until} AND last_seen >= {day} "
    "ORDER BY advice IS NULL, last_seen DESC, principal, client_id, topic"
    " LIMIT {limit}"
)
_COUNTS = {
    "uncommitted_answers": "past the high watermark",
    "unavailable_answers": "past the end of a follower",
    "too_small_answers": "before the log start",
    "too_large_answers": "past the end of the leader",
    "unknown_answers": "out of range",
    "redirect_loop_answers": "in a redirect loop",
    "failed_redirect_answers": "by a replica it was sent to",
    "spin_answers": "to a repeated refused offset",
    "stale_metadata_answers": "by a broker that does not lead",
    "other_error_answers": "with another error",
    "resets": "resets of the offset",
    "diverged_answers": "of a truncated log",
    "lagging_minutes": "minutes on a lagging follower",
}


def findings(scope: Scope) -> Iterator[Finding]:
    """Each client and topic that could not be read as it should, with what ends that."""
    for row in scope.rows(_PROBLEMS):
        topic = row["topic"] or row["unnamed_topic_id"]
        yield Finding(
            text=f"{client_text(row)} reading {topic}: {_counts(row)}.",
            state=FACT if row["advice"] is None else PROBLEM,
            next_step=reasons.read_step(row),
            evidence_table="read_problems",
            evidence=row,
        )


def _counts(row: Row) -> str:
    return ", ".join(f"{row[name]} {what}" for name, what in _COUNTS.items() if row[name])
