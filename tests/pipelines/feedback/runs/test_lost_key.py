"""A signing key that is gone: no other is made beside its leases, and no limit is left behind."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.ledger import deployment
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import context, restore_run

from ..delta_scene import Opened, apply, changes, ledger
from ..fake_configs import DictConfigs, FileTopic, topic_path

KEY = "producer_byte_rate"
EVE, ZOE = (changes(name)[0].entity for name in ("eve", "zoe"))


@pytest.fixture
def words(conf: Conf) -> Sequence[str]:
    return ["--set", f"warehouse.path={conf.warehouse.folder}"]


@pytest.fixture
def configs(conf: Conf, opened: Opened) -> DictConfigs:
    """Two limits of ours, without the key that signed their leases and without the tables."""
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve", "zoe")
    deployment.key_file().rename(deployment.key_file().with_name("copy"))
    shutil.rmtree(conf.warehouse.folder)
    return configs


def put_back() -> None:
    shutil.copy(deployment.key_file().with_name("copy"), deployment.key_file())


def make_another() -> None:
    deployment.key_file().write_text("n" * 64)
    deployment.key_file().chmod(0o600)


def leases(conf: Conf) -> int:
    items = dict(FileTopic(topic_path(conf)).read())
    return sum(value is not None for key, value in items.items() if b"lease" in key)


@pytest.mark.parametrize("command", [["apply"], ["adopt"], ["release", "user/eve", KEY]])
def test_no_key_is_made_where_a_lost_one_signed_leases(
    conf: Conf,
    configs: DictConfigs,
    words: Sequence[str],
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    file, before = deployment.key_file(), topic_path(conf).read_bytes()
    assert execute([*command, "--yes", *words]) == 1
    error = capsys.readouterr().err
    assert (
        f"the signing key {file} is gone, and the topic quotaflow-leases has 2 leases of" in error
    )
    assert "Put a copy of the file back" in error
    assert not file.exists()
    assert topic_path(conf).read_bytes() == before
    put_back()
    restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert [*configs.configs.values()] == [{}, {}]


def test_with_another_key_each_lease_waits_for_a_person(
    conf: Conf, configs: DictConfigs, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    make_another()
    assert execute(["adopt", *words]) == 1
    error = capsys.readouterr().err
    assert f"left: user eve in cluster c1: {KEY} (1000): its lease in the topic does not" in error
    assert f"quotaflow adopt user/eve {KEY} --yes takes it over; by hand: kafka-configs.sh" in error
    assert execute(["adopt", "--yes", *words]) == 1
    assert leases(conf) == 2
    with pytest.raises(FeedbackError, match="not sure what is to be restored"):
        apply(conf, "yan")

    assert execute(["adopt", "user/eve", KEY, *words]) == 3
    assert execute(["adopt", "user/eve", KEY, "--yes", *words]) == 0
    capsys.readouterr()
    assert execute(["restore", "--all", "--yes", *words]) == 1
    assert "user zoe in cluster c1" in capsys.readouterr().err
    assert (configs.configs[EVE], configs.configs[ZOE]) == ({}, {KEY: "1000"})

    # What the printed command does by hand.
    configs.configs[ZOE] = {}
    assert execute(["adopt", "--yes", *words]) == 0
    assert leases(conf) == 0
    assert apply(conf, "yan") == [DONE]


def test_a_lease_that_nobody_took_over_is_given_back_by_its_own_key(
    conf: Conf, configs: DictConfigs, words: Sequence[str]
) -> None:
    make_another()
    assert execute(["adopt", "--yes", *words]) == 1
    put_back()
    restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    assert [*configs.configs.values()] == [{}, {}]
    assert ledger(conf).owned == {}


def test_a_lease_that_cannot_be_read_stays_while_its_config_is_set(
    conf: Conf, opened: Opened, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configs = DictConfigs()
    opened(configs)
    apply(conf, "eve")
    topic = FileTopic(topic_path(conf))
    key, value = next((k, v) for k, v in topic.read() if v and b"lease" in k)
    topic.append([(key, value.replace(b"owned", b"other"))])
    shutil.rmtree(conf.warehouse.folder)
    assert execute(["adopt", "--yes", *words]) == 1
    assert "nor can it be read: it stays until the config is removed" in capsys.readouterr().err
    assert execute(["adopt", "user/eve", KEY, "--yes", *words]) == 2
    assert leases(conf) == 1
    configs.configs[EVE] = {}
    assert execute(["adopt", "--yes", *words]) == 0
    assert leases(conf) == 0


def test_a_first_key_is_made_where_nothing_needs_another(
    conf: Conf, opened: Opened, home: Path
) -> None:
    opened(DictConfigs())
    apply(conf, "eve")
    restore_run.restore_configs(context.from_conf(conf), print, everything=True)
    shutil.rmtree(home / "feedback")
    assert apply(conf, "eve") == [DONE]
