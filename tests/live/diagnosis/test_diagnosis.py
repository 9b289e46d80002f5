"""Faults planted into clients of a real cluster are named first, and nobody else is accused."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.snapshots import take

from ...command_line import Command, in_options
from ...docs.pages import PAGES
from ...simulators.clients.confusion import SURE
from ..conftest import conf_of_scene, login_of
from ..rack_scene import Roles
from ..tables_read import query
from . import scenes
from .scenes import SCENES, WELL, Scene
from .stage import LOG, Stage

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]
JOBS = ["ingest_request_log", "client_metrics", "fetches", "request_results", "fetch_results"]
SETTINGS = {"num.io.threads": "1", "replica.lag.time.max.ms": "3000"}
"""One client can keep a broker busy, and a follower that pauses leaves the in-sync replicas."""
NAMES = [pytest.param(scene, id=scene.name) for scene in SCENES]


@dataclass(frozen=True)
class Played:
    """The warehouse after all acts, and causes by client id, the first of each symptom first."""

    folder: Path
    roles: Roles
    causes: Mapping[str, Sequence[dict[str, Any]]]

    def first(self, scene: Scene) -> list[dict[str, Any]]:
        rows = [row for row in self.causes.get(scene.name, ()) if row["rank"] == 1]
        return [row for row in rows if (row["symptom"], row["cause"]) != ("slow", scene.also)]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    place = tmp_path_factory.mktemp("diagnosis")
    with (
        LocalCluster(place / "cluster", settings=SETTINGS, is_kept=False) as cluster,
        pytest.MonkeyPatch.context() as patch,
    ):
        cluster.create_topics([LOG], 1, 1, {"max.message.bytes": str(8 << 20)})
        conf = conf_of_scene(login_of(cluster, patch), place, LOG)
        stage = Stage(cluster)
        scenes.play(stage, lambda at: take.take(conf, at, lambda _: None))
        runner.run(conf, JOBS, None, lambda _: None)
        causes = defaultdict(list)
        folder = conf.warehouse.folder
        for row in query(folder, "SELECT * FROM client_diagnoses ORDER BY client_id, rank, since"):
            causes[row["client_id"]].append(row)
        yield Played(folder, stage.roles, causes)


@pytest.mark.parametrize("scene", NAMES)
def test_the_planted_cause_is_named_first_and_no_other_is_sure(
    played: Played, scene: Scene
) -> None:
    first = played.first(scene)
    expected = {(scene.symptom, scene.cause)} if scene.is_seen else set()
    assert {(row["symptom"], row["cause"]) for row in first} == expected, first
    rows = played.causes.get(scene.name, ())
    # Each error of a client that fails is in the log, and a broker that pauses brings several.
    others = [row for row in rows if row["rank"] > 1 and row["symptom"] != "failing"]
    assert [row for row in others if (row["confidence"] or 0) >= SURE] == []
    if scene.detail:
        role = str(getattr(played.roles, scene.detail, scene.detail))
        assert {row["detail"] for row in first} == {role}
    if scene.changed:
        facts = [{each["fact"]: each["text"] for each in row["facts"]} for row in first]
        assert {each["changed"] for each in facts} == {scene.changed}


@pytest.mark.parametrize("scene", NAMES)
def test_why_says_first_what_is_planted(played: Played, scene: Scene, command: Command) -> None:
    options = ("--for", "1h", *in_options(f"warehouse.path={played.folder}"))
    words = " ".join(command("why", scene.name, *options).out.split())
    if scene.is_seen:
        verb = {"slow": "is slow: ", "failing": "gets errors: "}[scene.symptom]
        assert scene.also or words.startswith(f"{scene.name} {verb}"), words
    elif not scene.also:
        assert " is slow: " not in words
        assert " gets errors: " not in words


def test_the_page_shows_what_was_planted_and_what_was_named(played: Played) -> None:
    lines = "\n".join(matrix(played))
    assert lines in PAGES["docs/diagnosis.md"], lines


def matrix(played: Played) -> Iterator[str]:
    """Planted faults by the cause that is named first, in Markdown."""
    planted = defaultdict[str, list[str]](list)
    for scene in SCENES:
        causes = {row["cause"] for row in played.first(scene)} or {WELL}
        right = "" if causes == {scene.cause} else f" (is `{scene.cause}`)"
        planted[", ".join(sorted(causes))].append(scene.name.replace("-", " ") + right)
    yield "| named first | planted |"
    yield "| --- | --- |"
    for cause, names in planted.items():
        yield f"| `{cause}` | {', '.join(names)} |"
