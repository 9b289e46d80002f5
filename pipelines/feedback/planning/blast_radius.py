"""Blast radius: how much one plan and one day change, and what is watched first. Pure.

The first entity of a kind is a canary. The others follow when results are newer than its write and
its dead time, and the cluster is not worse. A default changes all of its kind, so it is always a
canary, and changes alone. To restore is never counted and never waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import APPLY, RENEW, BlockedChange, Change
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning.holds import DECIDED_BY_PROPOSALS
from quotaflow.schemas.configs import BROKER, QUOTA_ENTITIES, TOPIC
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.limit import REVERT

QUOTA_TYPES = frozenset(QUOTA_ENTITIES)
"""Entities that have client quotas."""
DAY = timedelta(days=1)
_TIME = "%Y-%m-%d %H:%M:%S UTC"


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """How much may change, by conf and by what is known of the cluster.

    `max_entities` quota entities change in one plan, `max_entities_per_day` in 24 hours, and of a
    type at most `max_share` of `entity_counts`. `moves`: the brokers of each current reassignment.
    `results_at`: the newest time of results, and `dead_time` the time from a write to the first
    result that shows its effect.
    """

    max_entities: int = 5
    max_entities_per_day: int = 20
    max_share: float = 1.0
    entity_counts: Mapping[str, int] = field(default_factory=dict)
    moves: Sequence[frozenset[str]] = ()
    dead_time: timedelta = timedelta(0)
    results_at: datetime | None = None
    canary: bool = True

    def share_of(self, entity_type: str) -> int | None:
        """How many entities of a type one plan may change; None where their number is unknown."""
        count = self.entity_counts.get(entity_type)
        return None if count is None else max(1, int(count * self.max_share))


@dataclass(slots=True)
class Room:
    """What the plan changes so far, and why one more entity is too many."""

    radius: BlastRadius
    ledger: Ledger
    now: datetime
    seen: dict[str, list[ConfigEntity]] = field(default_factory=dict)

    def problem(self, change: Change) -> str | None:
        """Why this change has to wait; None if it is kept."""
        if is_uncounted(change, self.ledger):
            return None
        kind = change.entity.entity_type
        entities = self.seen.setdefault(kind, [])
        if change.entity in entities:
            return None
        why = self.beside_default(change) or _of_kind(kind)(self, change)
        if why is None:
            entities.append(change.entity)
        return why

    def beside_default(self, change: Change) -> str | None:
        """A default changes alone: else nothing would show which change had which effect."""
        first = next((entity for seen in self.seen.values() for entity in seen), None)
        if first is None or not (first.is_default or change.entity.is_default):
            return None
        default = first if first.is_default else change.entity
        kind = default.entity_type
        return f"the default of all {kind}s changes alone in a plan: this comes with a later one"

    def of_quotas(self, change: Change) -> str | None:
        """A quota: bounded by plan, by day, by share, and by the canary."""
        planned = sum(len(self.seen.get(each, ())) for each in QUOTA_TYPES)
        if planned >= self.radius.max_entities:
            return _next_plan(
                f"at most {counted(self.radius.max_entities, 'entity', 'entities')}",
                "plan.max_entities",
            )
        written = written_in_a_day(self.ledger, change.entity.cluster_id, self.now)
        new = written.union(*(self.seen.get(each, ()) for each in QUOTA_TYPES))
        if change.entity not in new and len(new) >= self.radius.max_entities_per_day:
            return (
                f"{counted(len(written), 'entity was', 'entities were')} written in 24 hours, "
                f"plan.max_entities_per_day is {self.radius.max_entities_per_day}"
            )
        return self.of_share(change) or self.canary_problem(change)

    def of_brokers(self, change: Change) -> str | None:
        """A broker: one, or those of one move."""
        brokers = self.seen[BROKER]
        name, first = change.entity.entity_name or "", brokers[:1]
        if first and not any({first[0].entity_name, name} <= move for move in self.radius.moves):
            return _next_plan("one broker, or the brokers of one move", "blast radius")
        is_throttle = change.desired.config_key in DECIDED_BY_PROPOSALS
        return None if is_throttle else self.canary_problem(change)

    def of_share(self, change: Change) -> str | None:
        """A share of all entities of the type."""
        kind = change.entity.entity_type
        most = self.radius.share_of(kind)
        if most is None or len(self.seen[kind]) < most:
            return None
        return _next_plan(f"at most {counted(most, kind)}", "plan.max_entity_share")

    def canary_problem(self, change: Change) -> str | None:
        """Why an entity waits for the effect of what was written first, or last, of its kind."""
        if not self.radius.canary and not change.entity.is_default:
            return None
        cluster_id, kind = change.entity.cluster_id, change.entity.entity_type
        newest = max(
            (
                record.event_time
                for record in self.ledger.applied
                if (record.entity.cluster_id, record.entity.entity_type) == (cluster_id, kind)
                and record.config_key not in DECIDED_BY_PROPOSALS
                and self.now - record.event_time < DAY
            ),
            default=None,
        )
        if newest is None:
            if not self.seen[kind]:
                return None
            return f"{self.seen[kind][0]} is changed first, and its effect is watched"
        due, results_at = newest + self.radius.dead_time, self.radius.results_at
        if results_at is not None and results_at >= due:
            return None
        return (
            f"the last change of kind {kind} was at {newest:{_TIME}}: "
            f"the next waits for results of {due:{_TIME}}, which show its effect"
        )


def within(
    changes: Sequence[Change], radius: BlastRadius | None, ledger: Ledger, now: datetime
) -> tuple[list[Change], list[BlockedChange]]:
    """The changes that one plan may make, in order, and the others with the reason."""
    if radius is None:
        return list(changes), []
    room = Room(radius, ledger, now)
    kept: list[Change] = []
    blocked: list[BlockedChange] = []
    for change in changes:
        why = room.problem(change)
        if why is None:
            kept.append(change)
        else:
            blocked.append(BlockedChange(change.desired, why))
    return kept, blocked


def written_in_a_day(ledger: Ledger, cluster_id: str, now: datetime) -> set[ConfigEntity]:
    """The quota entities that plans wrote in the last 24 hours, each once."""
    return {
        record.entity
        for record in ledger.applied
        if now - record.event_time < DAY
        and record.entity.cluster_id == cluster_id
        and record.entity.entity_type in QUOTA_TYPES
    }


def is_uncounted(change: Change, ledger: Ledger) -> bool:
    """Whether a change only restores, or renews what is in place."""
    if change.operation.name == RENEW or change.purpose != APPLY:
        return True
    removes_ours = change.value is None and change.desired.key in ledger.owned
    return removes_ours or change.desired.direction == REVERT


def _of_kind(kind: str) -> Callable[[Room, Change], str | None]:
    if kind in QUOTA_TYPES:
        return Room.of_quotas
    return {BROKER: Room.of_brokers, TOPIC: Room.of_share}.get(kind, lambda *_: None)


def _next_plan(most: str, key: str) -> str:
    return f"{most} may change in one plan ({key}): it comes with the next"
