"""Where conf forbids writes to brokers, no command makes one."""

from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.writing import exclusive_section, write_conf
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.kafka.cluster_state import ClusterState

from ..fake_configs import desired, planned

FORBIDDEN = "feedback.may_write=false"


@pytest.fixture
def no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> admin.Cluster:
        raise AssertionError("a broker was asked")

    monkeypatch.setattr(admin, "describe", refuse)
    monkeypatch.setattr(admin, "client", refuse)


@pytest.mark.usefixtures("no_brokers")
@pytest.mark.parametrize(
    "words",
    [
        ["apply", "--yes"],
        ["restore", "--yes"],
        ["restore", "--all", "--yes"],
        ["restore", "--panic", "--yes"],
        ["adopt", "--yes"],
        ["release", "halt", "--yes"],
    ],
    ids=" ".join,
)
def test_a_command_that_writes_ends_before_it_asks_a_broker(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("k" * 32)
    key.chmod(0o600)
    place = [f"warehouse.path={tmp_path}", f"feedback.signing_keys=[file:{key}]", FORBIDDEN]
    assert execute([*words, *(word for each in place for word in ("--set", each))]) == 1
    assert write_conf.REFUSED in capsys.readouterr().err


@pytest.mark.parametrize("may_write", [True, False])
def test_no_request_that_alters_the_cluster_is_sent(may_write: bool) -> None:
    sent: list[Any] = []

    def send(request: Any, _: int | None) -> Any:
        sent.append(request)
        raise InterruptedError

    conf = config.load(overrides=[f"feedback.may_write={str(may_write).lower()}"])
    configs = LiveConfigs(ClusterState(context.from_conf(conf).writes.guarded(send)))
    changes = planned(desired()).changes
    with pytest.raises(InterruptedError):
        configs.refusal(changes)
    with pytest.raises(InterruptedError if may_write else FeedbackError):
        configs.write(changes)
    assert [request.validate_only for request in sent] == [True, False][: 1 + may_write]


def test_a_restore_by_the_cluster_alone_is_refused_too() -> None:
    conf = config.load(overrides=[FORBIDDEN])
    with (
        pytest.raises(FeedbackError, match="may_write"),
        exclusive_section.without_tables(context.from_conf(conf).writes, None),  # type: ignore[arg-type]
    ):
        pass
