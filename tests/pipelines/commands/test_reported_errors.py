"""Which errors end a command in one line, and which are bugs and shown with a traceback."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from quotaflow.pipelines import __main__ as command
from quotaflow.pipelines.spark import spark_errors


@pytest.fixture
def hung_up(monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[bytes]"]:
    """A live process, like the JVM of a session whose bridge does not listen any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        at = SimpleNamespace(address="127.0.0.1", port=port)
        gateway = SimpleNamespace(proc=process, gateway_parameters=at)
        context = SimpleNamespace(_gateway=gateway)
        monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=context))
        yield process
        process.kill()


def test_a_jvm_that_hangs_up_and_stays_is_not_said_to_have_ended(
    hung_up: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_errors, "_ENDED_TIMEOUT_S", 0.1)
    assert spark_errors.jvm_ended() is None
    hung_up.kill()
    monkeypatch.setattr(spark_errors, "_ENDED_TIMEOUT_S", 30)
    assert "(signal 9)" in str(spark_errors.jvm_ended())


def test_a_fault_of_our_own_is_shown_whole_even_when_the_jvm_is_gone(
    hung_up: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    hung_up.kill()

    def fail(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(command, "_done", fail)
    with pytest.raises(ZeroDivisionError):
        command.execute(["status"])
