"""Reads that go wrong (KIP-392): faults, loops, resets, and followers that lag."""

from collections.abc import Iterator, Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import NOW, Finding, RowProblem, client_text, moment
from quotaflow.pipelines.areas.question import Question, Row, undiagnosed
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.programs import program_of
from quotaflow.udfs.counted import counted

NAME = "read_problems"
TABLES = ("read_problems", "fetch_faults", "offset_resets", "lagging_reads")

READS = Question(
    "SELECT *, coalesce(topic, unnamed_topic_id) AS shown_topic FROM read_problems "
    "WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) AND {in_day:first_seen:last_seen}",
    "CASE WHEN advice IS NULL THEN 1 ELSE 0 END, last_seen DESC, principal, client_id, topic",
)
"""Reads that went wrong; without advice they are to be watched."""


def _failing(rows: Sequence[Row]) -> str:
    return f"Some reads are late or fail: {texts.names(row['client_id'] for row in rows)}."


def step(rows: Sequence[Row], says: str) -> str:
    """A part of what to do about reads that fail."""
    names = rows[0]["client_id"], rows[0]["principal"]
    return texts.run_why(names, says, "read_problems")


READ_FAILS = RowProblem(
    code="read_fails",
    severity=NOW,
    subjects="clients that cannot read as they should",
    subject=("principal", "client_id", "shown_topic"),
    table="read_problems",
    question=READS.where(f"advice IS NOT NULL AND {undiagnosed('out_of_range')}"),
    summary=_failing,
    action=lambda rows: texts.to_do([step(rows, "what to do")]),
)
PROBLEMS = (READ_FAILS,)
_COUNTS = {
    "uncommitted_answers": ("answer", "for an offset above the high watermark"),
    "unavailable_answers": ("answer", "for an offset beyond the end of a follower"),
    "too_small_answers": ("answer", "for an offset before the log start"),
    "too_large_answers": ("answer", "for an offset beyond the end of the leader"),
    "unknown_answers": ("answer", "for an offset out of range"),
    "redirect_loop_answers": ("answer", "in a redirect loop"),
    "failed_redirect_answers": ("answer", "from the wrong replica"),
    "spin_answers": ("answer", "for an offset that was refused three times or more"),
    "stale_metadata_answers": ("answer", "by a broker that does not lead the partition"),
    "other_error_answers": ("answer", "with another error"),
    "resets": ("reset", "of the offset"),
    "diverged_answers": ("answer", "after a truncation"),
    "lagging_minutes": ("minute", "of reads from a lagging follower"),
}
"""By column, what it counts."""


_MAX_KINDS = 2


def findings(scope: Scope) -> Iterator[Finding]:
    """Each client and topic that could not be read as it should, with what ends that."""
    for row in scope.ask(READS):
        yield Finding(
            text=f"{client_text(row)} {suffers(row)}, last in the minute from "
            f"{moment(row['last_seen'])}: {_counts(row)}.",
            problem=None if row["advice"] is None else READ_FAILS,
            next_step=reasons.read_step(row),
            evidence_table="read_problems",
            evidence=row,
        )


def step_of_client(scope: Scope, row: Row) -> str | None:
    """What ends the problems of reads of a diagnosed client; None without advice."""
    if not scope.reader.is_made("read_problems"):
        return None
    advised = (
        each
        for each in scope.ask(READS)
        if each["advice"] is not None
        and each["principal"] == row["principal"]
        and row["client_id"] in {each["client_id"], program_of(each["client_id"] or "")}
    )
    return next(map(reasons.read_step, advised), None)


def suffers(row: Row) -> str:
    """What is known: answers that had a fault, or a follower from which records come late."""
    is_late = not any(row[name] for name in _COUNTS if name != "lagging_minutes")
    topic = row["shown_topic"]
    return f"may have read {topic} late" if is_late else f"has faults in reads of {topic}"


def _counts(row: Row) -> str:
    counts = {what: row[name] for name, what in _COUNTS.items() if row[name]}
    most = sorted(counts, key=lambda what: -counts[what])
    more = len(most) - _MAX_KINDS
    others = f"; and faults of {counted(more, 'other kind')}" if more > 0 else ""
    shown = (f"{counted(counts[noun, where], noun)} {where}" for noun, where in most[:_MAX_KINDS])
    return "; ".join(shown) + others
