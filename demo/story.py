"""The demo's story: a cluster, its clients, every job, a plan and what its changes do."""

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import yaml
from confluent_kafka import Producer
from kafka.admin import ConfigResourceType

from quotaflow.demo import (
    completeness,
    lagging_scene,
    late_clients,
    pause_scene,
    playground,
    request_lines,
    runs,
    shown,
    story_conf,
    throttle_scene,
    traffic,
    traffic_configs,
)
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.late_clients import LateClients
from quotaflow.demo.past import scene as past_scene
from quotaflow.demo.past import snapshots as past_snapshots
from quotaflow.demo.shipper import Shipper
from quotaflow.demo.traffic_report import TrafficReport
from quotaflow.pipelines import config
from quotaflow.pipelines.config import sources
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.jobs.registry import GROUPS, JOBS
from quotaflow.pipelines.maintenance.upkeep import run_upkeep
from quotaflow.pipelines.quality import check
from quotaflow.pipelines.quality.validation import great_expectations
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

_SETTINGS = {
    "replica.lag.time.max.ms": str(pause_scene.LAG_TIME_MS),
    "replica.fetch.max.bytes": str(throttle_scene.FETCH_BYTES),
}

_EFFECT_S = 11.5
"""A window of 11 s must lie after a change for its effect to show in results."""

_FETCH_PAUSE_S = 3.0
"""The last minute of the tables must have a fetch of a throttled follower, because answers about
moves are about that minute."""

_OF_PAST = ("brokers", "topics", "replicas", "configs", "client_quotas", "settings")
"""What results of the past look up."""

_EFFECT_JOBS = ["ingest_request_log", "request_results"]
"""They fill what shows it: requests, subscriptions, and when results had a window after it."""

_CHECKED = ("client_quotas", "config_changes")

_EVERYTHING = "everything"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Display:
    """How the story is shown: a line with its time, a sentence, and a command with its output."""

    say: Say
    sentence: Say
    run: Callable[[list[str], list[str]], None]
    """Runs a command of quotaflow with these further arguments, which are not shown."""

    def show(self, commands: Iterable[shown.Shown], conf: Path) -> None:
        """Sentences, each with a command that shows it."""
        for sentence, arguments in commands:
            self.sentence(sentence)
            self.run(list(arguments), ["--conf", str(conf)])


@dataclass(frozen=True, slots=True)
class _Scene:
    """Where it is played."""

    folder: Path
    cluster: LocalCluster
    conf: config.Conf
    shipper: Shipper
    display: Display

    def show(self, commands: Iterable[shown.Shown]) -> None:
        """Sentences, each with a command that shows it."""
        self.display.show(commands, _conf_file(self.folder))


def play(seed: int, scale: float, display: Display, *, keeps_running: bool = False) -> None:
    """Play it all in a folder of its own, and leave the tables where every command finds them.

    With `keeps_running` all stays at work until Ctrl-C. Interrupted before, it leaves nothing
    behind. Raises JobError if a table or view has no rows and its head does not say why.
    """
    # Brokers that are still loading make librdkafka warn, and it tries again by itself.
    logging.getLogger("quotaflow.demo").setLevel(logging.ERROR)
    home = config.home()
    # The commands of the demo must not ask another cluster, or change it.
    given = sources.names(os.environ)
    for name in given:
        del os.environ[name]

    def sum_up(report: TrafficReport) -> None:
        is_published = runs.publish(home, folder / "warehouse")
        is_default = is_published and not given and sources.user_file() is None
        is_whole = scale >= 1 and not keeps_running
        _sum_up(folder, report, display, is_default=is_default, must_be_complete=is_whole)

    # To remove thousands of files takes seconds in which this process mostly waits.
    with ThreadPoolExecutor(1, "removal") as pool:
        with runs.new_run(home, datetime.now(UTC)) as folder:
            report = _fill(folder, seed, scale, display, sum_up if keeps_running else None)
            # Its passwords and data are of no use once the brokers have stopped.
            removed = [pool.submit(runs.remove, folder / "cluster")]
            runs.publish(home, folder / "warehouse")
        removed.append(pool.submit(runs.remove_older, home, folder))
        if not keeps_running:
            sum_up(report)
        for each in removed:
            each.result()


def _sum_up(
    folder: Path,
    report: TrafficReport,
    display: Display,
    *,
    is_default: bool,
    must_be_complete: bool,
) -> None:
    """What needs no cluster: counts, the report, and whether all tables have rows."""
    conf = _conf_file(folder)
    display.sentence(shown.clients(report))
    page = folder / "report.html"
    heads = completeness.heads_of_all()
    with ThreadPoolExecutor(1, "completeness") as pool:
        empty = pool.submit(completeness.without_rows, folder / "warehouse", heads)
        display.show([shown.last(page)], conf)
    completeness.report(empty.result(), len(heads), display.say, must_be_complete=must_be_complete)
    display.show(shown.WRONG, conf)
    display.sentence(shown.further(page, "" if is_default else f" --conf {conf}"))


def in_two(conf: config.Conf) -> tuple[list[str], list[str]]:
    """The jobs that fill facts, and those that maintain results."""
    on = {job.name for job in JOBS.values() if not job.off_by(conf)}
    facts, results = ([name for name in group if name in on] for group in GROUPS.values())
    return facts, results


def _conf_file(folder: Path) -> Path:
    return folder / "conf.yaml"


def _fill(
    folder: Path,
    seed: int,
    scale: float,
    display: Display,
    before_going_on: Callable[[TrafficReport], None] | None,
) -> TrafficReport:
    with LocalCluster(
        folder / "cluster", progress=display.say, settings=_SETTINGS, is_kept=False
    ) as cluster:
        conf = story_conf.for_cluster(cluster, folder / "warehouse")
        given = conf.model_dump(mode="json", exclude_defaults=True, exclude={"spark"})
        text = yaml.safe_dump(given, sort_keys=False)
        _conf_file(folder).write_text(text, encoding="utf-8")
        login = cluster.librdkafka_properties("shipper")
        with (
            Shipper(
                login, REQUEST_LOG_TOPIC, cluster.request_logs, is_filtered=_is_moved
            ) as shipper,
            late_clients.at_work(cluster) as late,
        ):
            scene = _Scene(folder, cluster, conf, shipper, display)
            report = _traffic(scene, late, seed, scale)
            _tables(scene)
            display.sentence(f"The conf of every command here, {_conf_file(folder)}, is:\n{text}")
            _plan(scene)
            _effect(scene)
            if before_going_on:
                before_going_on(report)
                # `run` starts a session of its own.
                session.get(conf.spark).stop()
                playground.play(cluster, seed, _conf_file(folder), display.sentence)
            late.end()
    return report


def _traffic(scene: _Scene, late: LateClients, seed: int, scale: float) -> TrafficReport:
    """The traffic, and beside it all that takes its own time; then what the tables need of it."""
    cluster, stop = scene.cluster, Event()
    with ThreadPoolExecutor(5, "scenes") as pool:
        scenes: list[Future[Any]] = [pool.submit(session.get, scene.conf.spark, scene.display.say)]
        _make_topics(cluster)
        past = past_scene.begin(cluster, seed)
        scene.display.sentence(shown.PAST)
        _take(scene, datetime.fromtimestamp(past.clock.start_ms / 1e3, UTC), _OF_PAST)
        past_snapshots.take_all(scene.conf, cluster.cluster_id, past)
        filled = pool.submit(past_scene.fill, cluster, past, REQUEST_LOG_TOPIC)
        forgotten = throttle_scene.forget(cluster)

        def prepared() -> None:
            scene.display.sentence(shown.BEFORE)
            _take(scene)
            late.start_consumers()
            scenes.append(pool.submit(_look_amid, scene, stop, traffic.DURATION_S * scale / 2))
            scenes.append(pool.submit(lagging_scene.play, cluster, stop))
            scenes.append(pool.submit(throttle_scene.fill, cluster))

        try:
            report = traffic.run(cluster, seed, scale, scene.display.say, prepared)
            late.start_frank()
            _, _, lagging, _ = [each.result() for each in scenes]
            scene.display.say(f"{filled.result()} request-log lines of the past written")
        finally:
            stop.set()
    _change_more(cluster)
    for acts, is_act in ((forgotten, throttle_scene.is_act), (lagging, lagging_scene.is_act)):
        request_lines.ship(cluster, REQUEST_LOG_TOPIC, acts.lines(cluster, is_act))
    _ship_torn_line(cluster)
    return report


def _look_amid(scene: _Scene, stop: Event, after_s: float) -> None:
    """A snapshot of the cluster at work."""
    if not stop.wait(after_s):
        scene.display.sentence(shown.AMID)
        _take(scene)


def _tables(scene: _Scene) -> None:
    """Everything that happened so far, in tables."""
    scene.display.say(f"{scene.shipper.drain().acked} request-log lines shipped")
    scene.display.sentence(shown.AFTER)
    facts, results = in_two(scene.conf)
    with ThreadPoolExecutor(1, "import") as pool:
        # The check needs it later. It takes seconds to load, and this process waits for Spark now.
        loaded = pool.submit(great_expectations)
        # A snapshot reads from facts who set a config, and results read the snapshot.
        runner.run(scene.conf, facts, None, scene.display.say, with_answers=False)
        _take(scene)
        runner.run(scene.conf, results, None, scene.display.say)
        loaded.result()


def _plan(scene: _Scene) -> None:
    """Plan and apply; while the changes work, check and show the tables."""
    scene.show(shown.PLAN)
    changed_s = _last_change_s(scene.conf)
    # Not before: what it changes makes answers due, and `apply` would wait for them.
    run_upkeep(scene.conf, ["quota_usage"], datetime.now(UTC), scene.display.say)
    stop = Event()
    with ThreadPoolExecutor(2, "effect") as pool:
        pause = pool.submit(pause_scene.play, scene.cluster, stop)
        # It is beside what reads tables alone, and says nothing amid their rows.
        checked = pool.submit(_check, scene)
        try:
            scene.show(shown.TABLES)
            checked.result()
            scene.show(shown.CHECKED)
            time.sleep(max(0.0, changed_s + _EFFECT_S - time.time()))
            time.sleep(max(0.0, _FETCH_PAUSE_S - time.time() % 60))
        finally:
            stop.set()
        pause.result()


def _last_change_s(conf: config.Conf) -> float:
    """When `apply` had written its last change."""
    tables = FolderReader(Warehouse(conf.warehouse))
    (last,) = tables.rows("SELECT max(event_time) AS at FROM config_changes WHERE step = 'done'")
    return float(last["at"].timestamp())


def _check(scene: _Scene) -> None:
    request = check.CheckRequest(_CHECKED)
    check.check(scene.conf, request, datetime.now(UTC), lambda _: None)


def _effect(scene: _Scene) -> None:
    """What the changes did, in tables; then take them back."""
    scene.shipper.drain()
    scene.display.sentence(shown.AGAIN)
    # `restore` brings answers up to date.
    runner.run(scene.conf, _EFFECT_JOBS, None, scene.display.say, with_answers=False)
    scene.show(shown.EFFECT)


def _take(scene: _Scene, time: datetime | None = None, tables: Collection[str] = ()) -> None:
    """A snapshot; nobody asks for answers before the results are there."""
    at = time or datetime.now(UTC)
    take.take(scene.conf, at, scene.display.say, tables, with_answers=False)


def _make_topics(cluster: LocalCluster) -> None:
    assigned = throttle_scene.ASSIGNMENTS | {lagging_scene.TOPIC: lagging_scene.ASSIGNMENTS}
    with cluster.admin() as admin:
        topics = {name: {"assignments": nodes} for name, nodes in assigned.items()}
        traffic_configs.make_topics(admin, topics)


def _change_more(cluster: LocalCluster) -> None:
    """A program of another team cordons a broker, a move begins, and clients push less."""
    with cluster.admin("carol", client_id="terraform-provider-kafka") as admin:
        traffic_configs.set_config(ConfigResourceType.BROKER, "2", "cordoned.log.dirs", "*")(admin)
    throttle_scene.start_move(cluster)
    cluster.subscribe_telemetry(
        _EVERYTHING, late_clients.IDLE_METRIC, late_clients.USUAL_INTERVAL_MS
    )


def _is_moved(line: bytes) -> bool:
    moved = (lagging_scene.is_moved, throttle_scene.is_moved, past_scene.is_of_past)
    return any(is_moved(line) for is_moved in moved)


def _ship_torn_line(cluster: LocalCluster) -> None:
    """Act as a careless shipper: half a line, so that quarantine has a row."""
    broker_id, path = min(cluster.request_logs.items())
    with path.open("rb") as log:
        half = log.readline(120)
    producer = Producer({**cluster.librdkafka_properties("shipper"), "enable.metrics.push": False})
    producer.produce(REQUEST_LOG_TOPIC, half, headers=[("broker_id", str(broker_id).encode())])
    producer.flush(30)
