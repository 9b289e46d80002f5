"""Reference for `schemas/results/fetch_faults.sql`: what is wrong with an answer.

A broker answers OFFSET_OUT_OF_RANGE (KIP-392, cases 1 to 4) where the offset is before its log
start or past its log end, and does not say which. What replicas reported in the minute of the
answer and in the minute before decides. Starts and ends of a log only grow. The rule assumes that
nothing is appended, committed, and deleted again within those two minutes: then no log start is
ever past an end that was reported in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quotaflow.udfs.rules.fetch_fault import ERRORS

UNCOMMITTED = "uncommitted_offset"
"""Case 1: the offset is past the high watermark of this replica, so nothing is read."""
UNAVAILABLE = "unavailable_offset"
"""Case 2: the offset is past the end of this follower, and another replica has it."""
TOO_SMALL = "offset_too_small"
"""Case 3: the offset is before the log start of this replica."""
TOO_LARGE = "offset_too_large"
"""Case 4: the offset is past the end of the leader."""
UNKNOWN = "out_of_range_unknown"
REDIRECT_LOOP = "redirect_loop"
"""One connection was sent to a replica for a partition so often that it must have come back."""
SPIN = "out_of_range_spin"
"""One connection requested the same offset, out of range, again and again."""
OUT_OF_RANGE = 1


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    """What a replica reported in two minutes; None: nothing.

    `log_start_offset` and `end_offset` are the highest of both minutes, `previous_end_offset` the
    highest end of the first one, `min_end_offset` the lowest of the second. An end is a high
    watermark, or a follower's log end. `is_leader`: it answered followers.
    """

    log_start_offset: int | None = None
    previous_end_offset: int | None = None
    min_end_offset: int | None = None
    end_offset: int | None = None
    is_leader: bool = False

    @property
    def settled_end_offset(self) -> int | None:
        """An end that no log start had passed yet: of the minute before, so it is not late."""
        return self.min_end_offset if self.previous_end_offset is None else self.previous_end_offset

    def is_past_end(self, refused_offset: int) -> bool | None:
        """Whether an offset it refused was past its end, else before its start; None: unknown."""
        if self.log_start_offset is not None and refused_offset < self.log_start_offset:
            return False
        if self.previous_end_offset is not None and refused_offset <= self.previous_end_offset:
            return False
        return True if _is_past(refused_offset, self.settled_end_offset) else None


NOTHING = ReplicaOffsets()


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """A partition of an answer to a consumer; None: not known."""

    broker_id: int
    error_code: int
    fetch_offset: int | None
    high_watermark: int | None = None


def leader(replicas: Mapping[int, ReplicaOffsets], in_snapshot: int | None) -> int | None:
    """Who led the partition: the one replica that answered followers, else by the snapshot.

    None where several did: leadership moved, and who led when is not known.
    """
    led = [broker_id for broker_id, offsets in replicas.items() if offsets.is_leader]
    return led[0] if len(led) == 1 else None if led else in_snapshot


def fault(
    answer: FetchAnswer, replicas: Mapping[int, ReplicaOffsets], leader_id: int | None
) -> str | None:
    """What is wrong with the answer; None if nothing is."""
    if answer.error_code == OUT_OF_RANGE:
        return _out_of_range(answer, replicas, leader_id)
    if answer.error_code:
        return ERRORS.get(answer.error_code, f"error_{answer.error_code}")
    if answer.fetch_offset is None or answer.high_watermark is None:
        return None
    return UNCOMMITTED if answer.fetch_offset > answer.high_watermark else None


def leader_has_offset(
    fetch_offset: int | None, replicas: Mapping[int, ReplicaOffsets], leader_id: int | None
) -> bool | None:
    """Whether the leader has an offset, as far as it reported; None: unknown."""
    leader = NOTHING if leader_id is None else replicas.get(leader_id, NOTHING)
    if fetch_offset is None or leader.log_start_offset is None or leader.end_offset is None:
        return None
    return leader.log_start_offset <= fetch_offset <= leader.end_offset


def _out_of_range(
    answer: FetchAnswer, replicas: Mapping[int, ReplicaOffsets], leader_id: int | None
) -> str:
    offset, own = answer.fetch_offset, replicas.get(answer.broker_id, NOTHING)
    if offset is None:
        return UNKNOWN
    is_past_end = own.is_past_end(offset)
    of_leader = NOTHING if leader_id is None else replicas.get(leader_id, NOTHING)
    if is_past_end is None:
        # No follower knows of more that is committed than the leader, so none starts past that.
        is_past_end = _is_past(offset, of_leader.settled_end_offset) or None
    if is_past_end is None:
        return UNKNOWN
    if not is_past_end:
        return TOO_SMALL
    if answer.broker_id == leader_id:
        return TOO_LARGE
    if of_leader.end_offset is None:
        return UNKNOWN
    ends = (other.end_offset for id_, other in replicas.items() if id_ != answer.broker_id)
    return UNAVAILABLE if any(end is not None and offset <= end for end in ends) else TOO_LARGE


def _is_past(offset: int, end: int | None) -> bool:
    return end is not None and offset > end
