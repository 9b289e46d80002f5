"""What is said of faults planted into clients: `python -m tests.simulators.clients.confusion`."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...schemas.views.view_tables import by_case
from .scenes import ALSO, BROKER, GROUP, PLANTED, TARGETS, TOPIC, WELL, world_of

SURE = 0.9
FRESH = range(7_000_000, 7_000_003)
"""Seeds that nobody looked at while the rule was written; each plays every scene."""
_WHY = (
    "SELECT cluster_id, coalesce(principal, group_id, topic, concat('broker ', "
    "CAST(broker_id AS STRING))) AS subject, cause, confidence, share FROM diagnoses "
    "ORDER BY cluster_id, subject, symptom, rank"
)
_KINDS = {
    "User:target": "a client",
    BROKER: "a broker: a slow disk, network threads, pauses, a loud client",
    GROUP: "a group: members that do not come back, start again, poll late",
    TOPIC: "a topic: a broker or a disk is down, a follower is behind",
}
_VICTIMS = {"a slow disk", "a quota beside a slow broker"}
_VICTIMS |= {scene for scene, target in TARGETS.items() if target == BROKER}
"""Scenes in which others suffer too."""


@dataclass(frozen=True)
class Outcome:
    """What was planted into the target, and what the product says of it and of the others."""

    scene: str
    seed: int
    causes: tuple[tuple[str, float | None], ...]
    accused: tuple[str, ...]
    """Clients and others that were well, and have a diagnosis."""

    @property
    def planted(self) -> str | None:
        return PLANTED[self.scene][0] if self.scene in PLANTED else None

    @property
    def first(self) -> str | None:
        return self.causes[0][0] if self.causes else None

    @property
    def is_right(self) -> bool:
        return self.first == self.planted and not self.accused

    @property
    def wrong(self) -> tuple[str, ...]:
        """Causes that it is sure of, and that are not there."""
        planted = {self.planted, ALSO.get(self.scene)}
        return tuple(c for c, sure in self.causes if c not in planted and (sure or 0) >= SURE)


def outcomes(seeds: Iterable[int]) -> list[Outcome]:
    """One for each scene and seed."""
    scenes = {f"{name} {seed}": (name, seed) for name in (*PLANTED, *WELL) for seed in seeds}
    worlds = {case: world_of(*scene) for case, scene in scenes.items()}
    return [_outcome(*scenes[case], rows) for case, rows in by_case(worlds, _WHY).items()]


def _outcome(scene: str, seed: int, rows: Sequence[dict[str, object]]) -> Outcome:
    target = TARGETS.get(scene, "User:target")
    of_target = [row for row in rows if row["subject"] == target]
    # Where a topic moves, its move does not end.
    others = {str(row["subject"]) for row in rows} - {target, "orders"}
    causes = tuple((str(row["cause"]), row["confidence"]) for row in of_target)
    return Outcome(scene, seed, causes, () if scene in _VICTIMS else tuple(sorted(others)))


def matrix(given: Sequence[Outcome]) -> list[str]:
    """How many faults were named first and how many twins were left alone, in Markdown."""
    counts = defaultdict[str, Counter[str]](Counter)
    for outcome in given:
        kind = _KINDS[TARGETS.get(outcome.scene, "User:target")]
        what, how = ("twins", "well") if outcome.planted is None else ("faults", "named first")
        counts[kind] += Counter({what: 1, how: outcome.is_right})
    columns = ("faults", "named first", "twins", "well")
    lines = [f"| planted into | {' | '.join(columns)} |", "| --- | --- | --- | --- | --- |"]
    for kind, of_kind in counts.items():
        lines.append(f"| {kind} | {' | '.join(str(of_kind[each]) for each in columns)} |")
    return lines


def main() -> None:
    """Print the matrix of fresh seeds, and each wrong outcome."""
    seeds = range(*map(int, sys.argv[1:3])) if len(sys.argv) > 2 else FRESH
    given = outcomes(seeds)
    right, wrong = sum(o.is_right for o in given), sum(len(o.wrong) for o in given)
    accused = sum(len(o.accused) for o in given)
    lines = [
        *matrix(given),
        "",
        f"{right} of {len(given)} right; {wrong} wrong causes with {SURE} or ",
    ]
    lines[-1] += f"more; {accused} healthy clients accused"
    lines += [str(each) for each in given if not each.is_right or each.wrong]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
