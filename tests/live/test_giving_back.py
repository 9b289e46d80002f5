"""What we wrote is given back on a real cluster: by what verifies, and with the warehouse gone."""

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger import journal, lease_topic
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.runs import adopt_run, context
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.exclusive_section import DeltaJournal, RowAppender
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..command_line import in_options
from .readers import await_so
from .test_feedback import BYTES, apply, current, give_back, rows

EVE, ZOE, PAYMENTS = (ConfigEntity("", "user", f"giving-back-{n}") for n in ("eve", "zoe", "pay"))


@pytest.fixture
def words(login: list[str], conf: Conf) -> Sequence[str]:
    """The options that make a command use the conf of the test."""
    return in_options(*login, f"warehouse.path={conf.warehouse.folder}")


def written(cluster: LocalCluster, conf: Conf, *entities: ConfigEntity) -> None:
    desired = [row for e in entities for row in rows(cluster.cluster_id, e, {BYTES: "2000000"})]
    assert {outcome.step for outcome in apply(conf, desired)} == {DONE}


def values(cluster: LocalCluster, conf: Conf, *entities: ConfigEntity) -> list[str | None]:
    with current(conf) as read:
        on_cluster = [replace(entity, cluster_id=cluster.cluster_id) for entity in entities]
        return [read(entity).get(BYTES) for entity in on_cluster]


def await_values(
    cluster: LocalCluster, conf: Conf, entities: Sequence[ConfigEntity], expected: list[str | None]
) -> None:
    """Wait until they have these values: brokers learn of an alteration one after the other."""
    await_so(lambda: values(cluster, conf, *entities) == expected)


@pytest.mark.shows("leases what it writes, and gives it back")
def test_a_forged_ledger_is_refused_by_name_and_panic_needs_no_warehouse(
    cluster: LocalCluster, conf: Conf, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    set_quota = traffic_configs.set_quota
    with cluster.admin() as admin:
        assert set_quota(str(PAYMENTS.entity_name), BYTES, 5e6)(admin).error_code == 0
    written(cluster, conf, EVE, ZOE)
    done = next(r for r in journal.read_records(open_reader(conf)) if r.step == DONE)
    forged = replace(
        done,
        entity=replace(PAYMENTS, cluster_id=cluster.cluster_id),
        config_value="5000000",
        operand="5000000",
        prior_value="2500000",
        expires_at=datetime.now(UTC) - timedelta(minutes=1),
        change_id="forged",
    )
    DeltaJournal(RowAppender.from_conf(context.from_conf(conf).writes, print), "me").add([forged])

    assert execute(["restore", "--all", "--yes", *words]) == 1
    err = capsys.readouterr().err
    assert f"refused: user {PAYMENTS.entity_name} in cluster" in err
    assert "does not verify" in err
    await_values(cluster, conf, [EVE, ZOE, PAYMENTS], [None, None, "5000000"])

    written(cluster, conf, EVE, ZOE)
    with Warehouse(conf.warehouse).lock():
        # As while `run --every` has the lock.
        assert execute(["restore", "--all", "--yes", *words]) == 0
    assert "restored by the leases of the cluster" in capsys.readouterr().err
    await_values(cluster, conf, [EVE, ZOE], [None, None])

    written(cluster, conf, EVE, ZOE)
    shutil.rmtree(conf.warehouse.folder)
    assert execute(["restore", "--panic", *words]) == 3
    assert execute(["restore", "--panic", "--yes", *words]) == 0
    await_values(cluster, conf, [EVE, ZOE], [None, None])
    assert not conf.warehouse.folder.exists()
    with cluster.admin() as admin:
        assert set_quota(str(PAYMENTS.entity_name), BYTES, None)(admin).error_code == 0


def test_records_that_no_quotaflow_wrote_do_not_stop_a_panic(
    cluster: LocalCluster, conf: Conf, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    # Compaction leaves such records for ever, so other tests must not read them.
    name = "giving-back-poisoned"
    cluster.create_topics([name], 1, 1, lease_topic.CONFIGS)
    feedback = conf.feedback.model_copy(update={"lease_topic": name})
    conf = conf.model_copy(update={"feedback": feedback})
    words = [*words, "--set", f"feedback.lease_topic={name}"]
    written(cluster, conf, EVE)
    key = json.dumps(["lease", "user", EVE.entity_name, None, BYTES])
    stranger = json.dumps({"deployment": "stranger", "text": "{}", "mac": ""}).encode()
    dice = random.Random(4)
    poison = [
        # JSON in UTF-16, our config spelled with blanks, and what is no text at all.
        (json.dumps(["lease", "user", "x", None, "k"]).encode("utf-16"), b"{}"),
        (key.encode("utf-16"), stranger),
        (key.encode(), stranger),
        (dice.randbytes(40), dice.randbytes(400)),
        (b"[" * 10_000, b"[" * 10_000),
    ]
    with exclusive_section.open_leases(context.from_conf(conf).writes) as topic:
        topic.append(poison)
        assert set(poison) <= set(topic.read())
    assert execute(["restore", "--panic", *words]) == 3
    assert execute(["restore", "--panic", "--yes", *words]) == 0
    assert "Traceback" not in capsys.readouterr().err
    await_values(cluster, conf, [EVE], [None])
    # The tables get the records of it, and nothing is in doubt.
    with exclusive_section.acquired(context.from_conf(conf).writes, print) as section:
        assert (section.ledger.owned, section.trust.refused) == ({}, ())


def test_two_deployments_do_not_share_a_config_and_one_takes_over_what_the_other_lost(
    cluster: LocalCluster, conf: Conf, tmp_path: Path
) -> None:
    written(cluster, conf, EVE)
    warehouse = conf.warehouse.model_copy(update={"path": str(tmp_path / "other")})
    other = conf.model_copy(update={"warehouse": warehouse})
    desired = rows(cluster.cluster_id, EVE, {BYTES: "3000000"}, prior_value="2000000")
    (outcome,) = apply(other, desired)
    assert outcome.detail is not None
    assert "has a lease of it" in outcome.detail
    name = outcome.detail.split()[1]
    adopted = adopt_run.preview(context.from_conf(other), name).configs
    assert [each.owned.value for each in adopted] == ["2000000"]
    adopt_run.adopt(context.from_conf(other), print, name)
    give_back(other)
    await_values(cluster, conf, [EVE], [None])


def test_without_the_topic_of_leases_apply_says_how_to_create_it(conf: Conf) -> None:
    feedback = conf.feedback.model_copy(update={"lease_topic": "giving-back-no-topic"})
    missing = conf.model_copy(update={"feedback": feedback})
    with (
        pytest.raises(FeedbackError, match=r"Create it: kafka-topics\.sh .*giving-back-no-topic"),
        exclusive_section.acquired(context.from_conf(missing).writes, print),
    ):
        pass
