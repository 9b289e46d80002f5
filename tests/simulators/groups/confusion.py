"""What the rule says of planted causes: `python -m tests.simulators.groups.confusion`."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .plants import SCENES, Scene, planted
from .tables import reader_of

SURE = 0.9
FRESH = range(4_000_000, 4_000_000 + 6 * len(SCENES))
"""Seeds that nobody looked at while the rule was written: more than 100."""
_WHY = "SELECT cluster_id, cause, confidence FROM why_groups_lag ORDER BY cluster_id, rank"


@dataclass(frozen=True)
class Verdict:
    """What was planted, and what the product says, the surest first."""

    seed: int
    plants: tuple[str, ...]
    causes: tuple[tuple[str, float | None], ...]

    @property
    def scene(self) -> Scene:
        return SCENES[self.seed % len(SCENES)]

    @property
    def named(self) -> tuple[str, ...]:
        """As many causes as were planted; of a group without a plant all."""
        return tuple(name for name, _ in self.causes[: len(self.plants) or None])

    @property
    def is_right(self) -> bool:
        """The planted causes come first, in any order."""
        return set(self.named) == set(self.plants)

    @property
    def wrong(self) -> tuple[str, ...]:
        """Causes that it is sure of, and that are not there."""
        return tuple(
            name for name, sure in self.causes if name not in self.plants and (sure or 0) >= SURE
        )


def verdicts(seeds: Iterable[int]) -> list[Verdict]:
    """One for each seed."""
    worlds = {f"c{seed}": (seed, planted(seed)) for seed in seeds}
    causes = defaultdict[str, list[tuple[str, float | None]]](list)
    for row in reader_of(world for _, world in worlds.values()).rows(_WHY):
        causes[row["cluster_id"]].append((row["cause"], row["confidence"]))
    return [
        Verdict(seed, world.plants, tuple(causes[cluster]))
        for cluster, (seed, world) in worlds.items()
    ]


def matrix(given: Sequence[Verdict]) -> list[str]:
    """Planted causes by named ones, in Markdown."""
    rows = defaultdict[str, Counter[str]](Counter)
    for verdict in given:
        rows[verdict.scene.name][text(sorted(verdict.named))] += 1
    lines = ["| planted | named first | of | wrong and sure |", "| --- | --- | --- | --- |"]
    for scene in SCENES:
        name = scene.name
        named = ", ".join(f"{cause}: {n}" for cause, n in rows[name].most_common())
        wrong = sum(len(v.wrong) for v in given if v.scene == scene)
        lines.append(f"| {name} | {named} | {rows[name].total()} | {wrong} |")
    return lines


def text(causes: Iterable[str]) -> str:
    """Causes in words."""
    return " and ".join(causes) or "nothing"


def main() -> None:
    """Print the matrix of the seeds given, else of fresh ones, and each wrong verdict."""
    seeds = range(*map(int, sys.argv[1:3])) if len(sys.argv) > 2 else FRESH
    given = verdicts(seeds)
    right, wrong = sum(v.is_right for v in given), sum(len(v.wrong) for v in given)
    lines = [*matrix(given), ""]
    lines.append(f"{right} of {len(given)} right; {wrong} wrong causes with {SURE} or more")
    lines += [str(each) for each in given if not each.is_right or each.wrong]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
