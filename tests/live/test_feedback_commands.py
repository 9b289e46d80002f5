"""plan, apply and restore as an operator runs them; killed, and side by side."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.outcome import MAY_LAND_FOR
from quotaflow.pipelines.warehouse.readers import open_reader

from ..command_line import Command
from ..own_process import quotaflow
from . import advised_quotas, live_configs

USERS = ("feedback-eve", "feedback-mal", "feedback-zoe")
BYTES = "producer_byte_rate"
HERE = Path(__file__).parent
TIMEOUT_S = 240


class Operator:
    """Runs quotaflow with one conf, in this process or in one of its own."""

    def __init__(self, cluster: LocalCluster, conf: Conf, folder: Path, command: Command) -> None:
        self.cluster, self.conf, self.file = cluster, conf, folder / "conf.yaml"
        self.run = Command(command.capsys, ("--conf", str(self.file)))
        on_cluster = {
            "kafka": {"properties": dict(conf.kafka.properties)},
            "warehouse": {"path": str(conf.warehouse.folder)},
            "quotas": {"advised_users": list(USERS)},
            "plan": {
                "max_input_age_s": 86_400,
                "cooldown_s": 0,
                "canary": False,
                "max_entity_share": 1.0,
                "max_entities_per_day": 1_000,
            },
        }
        self.file.write_text(yaml.safe_dump(on_cluster))
        advised_quotas.fill(conf, cluster.cluster_id, USERS)

    def execute(self, *words: str) -> str:
        """What a command prints, with any exit code."""
        execute([*words, "--conf", str(self.file)])
        return self.run.capsys.readouterr().err

    def start(self, *command: str) -> "subprocess.Popen[str]":
        words = [sys.executable, *command]
        return subprocess.Popen(words, stdout=-1, stderr=subprocess.STDOUT, text=True)

    def quotas(self) -> list[dict[str, str]]:
        users = [ConfigEntity(self.cluster.cluster_id, "user", user) for user in USERS]
        with live_configs.opened(self.conf) as configs:
            return [configs.read(user) for user in users]

    def open(self) -> set[tuple[str, str | None]]:
        """Writes without an end: the run of each, and whose quota it is."""
        records = journal.read_ledger(open_reader(self.conf)).open_records
        return {(record.run_id, record.entity.entity_name) for record in records}


@pytest.fixture
def operator(cluster: LocalCluster, conf: Conf, tmp_path: Path, command: Command) -> Operator:
    return Operator(cluster, conf, tmp_path, command)


ADVISED = {BYTES: str(advised_quotas.QUOTA)}


DONE = "done       user feedback-"


@pytest.mark.faults
def test_a_plan_is_frozen_read_applied_by_its_id_and_given_back(operator: Operator) -> None:
    planned = operator.run("plan", "--save", "--json", code=3)
    plan_id = planned.rows[0]["plan_id"]
    assert f"quotaflow apply {plan_id} --yes" in planned.err
    shown = operator.run("apply", plan_id, code=3)
    assert "Nothing was written: --yes writes it." in shown.err
    assert shown.out.count("accepted   user feedback-") == 3
    assert operator.quotas() == [{}] * 3

    assert operator.run("apply", plan_id, "--yes").out.count(DONE) == 3
    assert operator.quotas() == [ADVISED] * 3
    assert operator.run("apply", plan_id, "--yes").out.count("already_set") == 3
    operator.run("plan")

    assert "nothing to restore" in operator.run("restore").out
    assert operator.run("restore", "--all", "--yes").out.count(DONE) == 3
    assert operator.quotas() == [{}] * 3
    # An approval is used up.
    refused = operator.run("apply", plan_id, "--yes", code=1)
    assert "was applied before, and what it wrote was restored" in refused.err
    assert operator.quotas() == [{}] * 3
    # Asked for and approved again, it is the same plan, and may be applied once more.
    assert {row["plan_id"] for row in operator.run("plan", "--save", "--json", code=3).rows} == {
        plan_id
    }
    assert operator.run("apply", plan_id, "--yes").out.count(DONE) == 3
    operator.run("restore", "--all", "--yes")
    assert operator.quotas() == [{}] * 3


@pytest.mark.faults
def test_a_frozen_plan_is_not_applied_where_the_cluster_has_moved(operator: Operator) -> None:
    saved = operator.run("plan", "--save", code=3).err
    plan_id = re.search(r"quotaflow apply (\w+) --yes", saved)[1]  # type: ignore[index]
    operator.run("apply", "--yes")
    operator.run("restore", "--all", "--yes")
    with operator.cluster.admin() as admin:
        set_quota(admin, USERS[1], 5e6)
        error_text = operator.run("apply", plan_id, "--yes", code=1).err
        set_quota(admin, USERS[1], None)
    assert "feedback-mal" in error_text
    assert "no result lowers the quota of a user: it is 5000000 now" in error_text
    assert "nothing of plan" in error_text
    assert operator.quotas() == [{}] * 3


@pytest.mark.faults
@pytest.mark.shows(
    "leaves configs to the person or program that set them last, and names other managers"
)
def test_a_quota_that_an_operator_set_survives_plan_after_plan(operator: Operator) -> None:
    operator.run("apply", "--yes")
    with operator.cluster.admin() as admin:
        set_quota(admin, USERS[1], 5e6)
        for number in range(4):
            if number == 2:
                operator.execute("restore", "--all", "--yes")
            error_text = operator.execute("apply", "--yes")
            assert operator.quotas()[1] == {BYTES: "5000000"}
        operator.run("restore", "--all", "--yes")
        assert operator.quotas() == [{}, {BYTES: "5000000"}, {}]
        set_quota(admin, USERS[1], None)
    assert "quotaflow release user/feedback-mal producer_byte_rate" in error_text


@pytest.mark.faults
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("apply", "nope", "--yes"), "no plan nope was frozen"),
        (("plan", "--json", "--format", "jikkou"), "jikkou is a format of its own"),
        (("plan", "--set", "plan.max_step_factor=1"), "plan.max_step_factor"),
    ],
)
def test_wrong_use_is_one_line(operator: Operator, words: tuple[str, ...], message: str) -> None:
    assert message in operator.run.error(*words)


def set_quota(admin: object, user: str, value: float | None) -> None:
    assert traffic_configs.set_quota(user, BYTES, value)(admin).error_code == 0  # type: ignore[arg-type]


@pytest.mark.faults
@pytest.mark.timeout(1_800)
def test_kill_9_between_any_two_steps_loses_nothing(operator: Operator) -> None:
    killed = []
    for steps in range(1, 20):
        before = operator.open()
        script = str(HERE / "killed_apply.py")
        with operator.start(script, str(operator.file), str(steps)) as process:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        if process.returncode == 0:
            break
        assert process.returncode == -9, output
        killed += re.findall("killed after (\\w+)", output)
        operator.run("apply", "--yes")
        assert operator.quotas() == [ADVISED] * 3
        # What was made ends as soon as it shows; what was begun may have been sent, and can land
        # for a while: it stays open until then.
        started = USERS[(steps - 1) // 2 :] if "begun" in killed else ()
        assert {user for _, user in operator.open() - before} == set(started)
        operator.run("restore", "--all", "--yes")
        assert operator.quotas() == [{}] * 3
    assert killed == ["looked", "begun", *["sent", "written"] * 3, "recorded"]
    time.sleep(MAY_LAND_FOR.total_seconds())
    operator.run("apply", "--yes")
    assert operator.open() == set()
    operator.run("restore", "--all", "--yes")
    assert operator.quotas() == [{}] * 3


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_of_two_at_once_one_writes_and_the_other_says_who(operator: Operator) -> None:
    words = quotaflow("apply", "--yes", "--conf", str(operator.file))[1:]
    with operator.start(*words) as one, operator.start(*words) as other:
        outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in (one, other)]
    assert sorted((one.returncode, other.returncode)) == [0, 1], outputs
    assert "another process writes configs from" in "".join(outputs)
    assert operator.quotas() == [ADVISED] * 3
    operator.run("restore", "--all", "--yes")
