"""Whether the reason of a change still exists just before it is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import APPLY, RENEW, Change, Plan, list_entries
from quotaflow.pipelines.feedback.planning.blast_radius import Room
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import CONFIGS

_VALID_FOR = timedelta(minutes=1)


@dataclass(slots=True)
class Recheck:
    """Compares changes with a plan of now, which is made again after a minute.

    `make` returns the plan of now without a blast radius. `room` is what an approved plan may still
    change, None where the plan itself is of now.
    """

    make: Callable[[], Plan]
    clock: Callable[[], datetime]
    room: Room | None = None
    fresh: Plan | None = None
    made_at: datetime | None = None

    def __call__(self, changes: Sequence[Change]) -> str | None:
        """Why these changes of one entity may not be written now; None if they may."""
        if all(change.purpose != APPLY for change in changes):
            return None
        now = self.clock()
        if self.fresh is None or self.made_at is None or now - self.made_at > _VALID_FOR:
            self.fresh, self.made_at = self.make(), now
        why = problem(changes, self.fresh)
        if why is not None or self.room is None:
            return why
        return next(filter(None, map(self.room.problem, changes)), None)


def problem(changes: Sequence[Change], fresh: Plan) -> str | None:
    """Why results no longer ask for these changes; None if they do. Pure.

    The plan of now must have a change of the same config in the same direction. What restores
    needs none.
    """
    by_key = {change.desired.key: change for change in fresh.changes}
    blocked = {each.desired.key: each.reason for each in reversed(fresh.blocked)}
    for change in changes:
        if change.purpose != APPLY:
            continue
        key = change.desired.key
        current = by_key.get(key)
        if current is None:
            return blocked.get(key, "results no longer ask for it")
        if change.operation.name != RENEW and direction(current) != direction(change):
            return f"results ask for {current.value} now"
    return None


def direction(change: Change) -> str:
    """Whether a change raises or lowers a number, sets, removes, or appends to a list."""
    row, after = change.desired, change.value
    if change.operation.name == RENEW or after is None or row.prior_value is None:
        return change.operation.name
    if not isinstance(CONFIGS[row.config_key].values, NumberValue):
        removed = set(list_entries(row.prior_value)) - set(list_entries(after))
        return f"{change.operation.name} {'fewer' if removed else 'more'}"
    try:
        return "lower" if float(after) < float(row.prior_value) else "higher"
    except ValueError:
        return change.operation.name
