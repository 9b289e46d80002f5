"""Giving back waits for no lock, table or disk, and a person takes over what nobody knows."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import NoReturn

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError, LockedError
from quotaflow.pipelines.feedback.ledger import deployment
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import adopt_run, context, restore_run
from quotaflow.pipelines.feedback.writing import exclusive_section, stop_file
from quotaflow.pipelines.feedback.writing.exclusive_section import DeltaJournal, RowAppender
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CONFIG_CHANGES

from ....cases import cases
from ..delta_scene import Folder, Opened, apply, changes, ledger
from ..fake_configs import DictConfigs, FileTopic, ListJournal, applying, topic_path

KEY = "producer_byte_rate"


def locked(conf: Conf, _: pytest.MonkeyPatch) -> AbstractContextManager[None]:
    return Warehouse(conf.warehouse).lock()


@contextmanager
def left_lock(_: Conf, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def only(*_: object) -> NoReturn:
        raise LockedError("me@host writes to cluster c1 until 13:00: wait for it")

    with monkeypatch.context() as patch:
        patch.setattr(exclusive_section, "_only", only)
        yield


@contextmanager
def full_disk(conf: Conf, _: pytest.MonkeyPatch) -> Iterator[None]:
    folder = Folder(Warehouse(conf.warehouse))
    folder.fill()
    yield
    folder.free()


@cases(
    "hindered",
    ("while run has the lock", locked),
    ("beside the lock of a killed apply in a catalog", left_lock),
    ("on a full disk", full_disk),
)
def test_giving_back_waits_for_nothing_and_is_recorded_later(
    conf: Conf,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    hindered: Callable[[Conf, pytest.MonkeyPatch], AbstractContextManager[None]],
) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve", "zoe")
    lines: list[str] = []
    with hindered(conf, monkeypatch):
        _, outcomes = restore_run.restore_configs(
            context.from_conf(conf), lines.append, everything=True
        )
    assert [outcome.step for outcome in outcomes] == [DONE, DONE]
    assert [*configs.configs.values()] == [{}, {}]
    assert lines[0].startswith("restored by the leases of the cluster, and recorded by a later")
    assert len(ledger(conf).owned) == 2
    with exclusive_section.acquired(context.from_conf(conf).writes, print) as section:
        assert section.trust.refused == ()
    assert (ledger(conf).owned, ledger(conf).open_records) == ({}, ())


def test_only_one_process_writes_configs_with_or_without_tables(conf: Conf, opened: Opened) -> None:
    opened(DictConfigs())
    apply(conf, "eve")
    with (
        exclusive_section.sole_writer(conf.warehouse),
        pytest.raises(LockedError, match=r"another process writes configs .* restore --panic"),
    ):
        restore_run.restore_configs(context.from_conf(conf), print, everything=True)


def test_panic_gives_back_with_the_tables_gone(conf: Conf, opened: Opened) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve", "zoe")
    stop_file.path(conf.plan, conf.warehouse).touch()
    shutil.rmtree(conf.warehouse.folder)
    (shown,) = restore_run.preview_panic(context.from_conf(conf))
    assert len(shown.plan.changes) == 2
    (done,) = restore_run.restore_panic(context.from_conf(conf), lambda: None)
    assert {outcome.step for outcome in done.outcomes} == {DONE}
    assert [*configs.configs.values()] == [{}, {}]
    assert not conf.warehouse.folder.exists()
    assert restore_run.preview_panic(context.from_conf(conf))[0].plan.changes == ()


def test_panic_gives_back_what_another_deployment_leased(conf: Conf, opened: Opened) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve")
    renamed = conf.model_copy(update={"feedback": config.FeedbackSection(deployment="new")})
    assert [
        each.plan.changes for each in restore_run.preview_panic(context.from_conf(renamed))
    ] == [()]
    done = restore_run.restore_panic(context.from_conf(renamed), lambda: None, all_deployments=True)
    assert [len(each.outcomes) for each in done] == [0, 1]
    assert [*configs.configs.values()] == [{}]
    with exclusive_section.acquired(context.from_conf(conf).writes, print) as section:
        assert (section.ledger.owned, section.trust.refused) == ({}, ())


def rows_of_another_deployment(conf: Conf) -> None:
    """What config_changes has of a run of a deployment with the same key, whose topic is lost."""
    made = ListJournal()
    applying(DictConfigs(), made, "old").run("p", changes("eve"))
    other = replace(deployment.signer(conf.feedback, conf.warehouse, make=True), deployment="old")
    rows = RowAppender.from_conf(context.from_conf(conf).writes, print)
    rows.ensure([CONFIG_CHANGES])
    signed = [other.signed(record, number) for number, record in enumerate(made.records)]
    DeltaJournal(rows, "me@host").add(signed)


def test_rows_of_another_deployment_are_taken_over_by_a_person(
    conf: Conf, opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    entity = changes("eve")[0].entity
    configs = DictConfigs({entity: {KEY: "1000"}})
    opened(configs)
    rows_of_another_deployment(conf)
    with pytest.raises(FeedbackError, match=r"not sure what is to be restored \(1 config\)"):
        apply(conf, "zoe")
    words = ["--set", f"warehouse.path={conf.warehouse.folder}"]
    assert execute(["restore", "--all", "--yes", *words]) == 1
    assert "no signature of this deployment: quotaflow adopt" in capsys.readouterr().err
    assert configs.configs[entity] == {KEY: "1000"}
    assert execute(["adopt", *words]) == 3
    out, _ = capsys.readouterr()
    assert "user eve in cluster c1: producer_byte_rate: 1000, restored to not set after" in out
    assert execute(["adopt", "--yes", *words]) == 0
    assert apply(conf, "zoe") == [DONE]
    assert execute(["restore", "--all", "--yes", *words]) == 0
    assert [*configs.configs.values()] == [{}, {}]
    capsys.readouterr()
    assert execute(["adopt", *words]) == 0
    assert capsys.readouterr().out == "nothing to take over\n"


def test_what_a_lost_warehouse_left_is_taken_over(conf: Conf, opened: Opened) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve")
    shutil.rmtree(conf.warehouse.folder)
    with pytest.raises(FeedbackError, match="quotaflow adopt shows what it takes over"):
        apply(conf, "zoe")
    assert [each.owned.value for each in adopt_run.preview(context.from_conf(conf)).configs] == [
        "1000"
    ]
    adopt_run.adopt(context.from_conf(conf), print)
    assert apply(conf, "zoe") == [DONE]
    assert len(ledger(conf).owned) == 2
    restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert [*configs.configs.values()] == [{}, {}]


def test_a_lost_topic_is_filled_again_by_what_is_taken_over(conf: Conf, opened: Opened) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve")
    topic_path(conf).unlink()
    restore, _ = restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert "the topic was lost" in restore.distrusted[0]
    assert configs.writes == 1
    adopt_run.adopt(context.from_conf(conf), print)
    restore, _ = restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert (restore.distrusted, [*configs.configs.values()]) == ((), [{}])


def test_what_is_forged_in_the_topic_stops_new_writes_until_a_person_removes_it(
    conf: Conf, opened: Opened
) -> None:
    opened(DictConfigs())
    apply(conf, "eve")
    topic = FileTopic(topic_path(conf))
    key, value = next((k, v) for k, v in topic.read() if v and b"lease" in k)
    topic.append([(key, value.replace(b"producer_id_rates", b"forged"))])
    with pytest.raises(FeedbackError, match="not sure what is to be restored"):
        apply(conf, "zoe")
    adopt_run.adopt(context.from_conf(conf), print)
    assert apply(conf, "zoe") == [DONE]
    assert len(ledger(conf).owned) == 2
