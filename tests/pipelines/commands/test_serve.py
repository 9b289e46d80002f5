"""`quotaflow serve`: whom it serves, and how it ends."""

import signal
import subprocess
import sys

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.commands.serve import access_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

from ...cases import first_of
from ...command_line import Command
from ...schemas.views.view_tables import make_table
from ..serve.serving_pages import get

_TOKEN = "serve.token=env:QUOTAFLOW_TEST_TOKEN"


@pytest.mark.parametrize(
    ("options", "token", "error"),
    [
        (["--address", "10.0.0.7"], None, "can be reached from other machines"),
        (["--address", "::"], None, "can be reached from other machines"),
        (["--address", "localhost"], None, "is no IP address: write 127.0.0.1"),
        (["--set", "serve.token=hunter2"], None, "serve.token: write env:NAME"),
        (["--set", _TOKEN], None, "QUOTAFLOW_TEST_TOKEN is not set"),
        (["--set", _TOKEN], "hunter2", "has less than 32 bytes"),
        (["--since", "yesterday"], None, "is no duration"),
        (["--set", "serve.proxies=[proxy.example]"], None, "write an address or a network"),
        (["--set", "serve.user_header='X Y'"], None, "write the name of a header"),
        (["--set", "serve.tls_cert=/no/such.pem"], None, "No such file or directory: write PEM"),
        (["--set", "serve.tls_cert=/etc/hostname"], None, "without a password"),
    ],
)
def test_what_would_let_anybody_read_is_refused(
    command: Command,
    options: list[str],
    token: str | None,
    error: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if token is not None:
        monkeypatch.setenv("QUOTAFLOW_TEST_TOKEN", token)
    printed = command("serve", "--port", "0", *options, code=2).err
    assert error in printed
    assert "hunter2" not in printed


def test_a_proxy_that_signs_people_in_takes_the_place_of_a_token() -> None:
    behind = config.Conf(serve=config.ServeSection(proxies=["10.0.0.0/28"], groups=["sre"]))
    proxies = access_of(behind, "0.0.0.0").proxies  # noqa: S104
    assert (proxies.has("10.0.0.5"), proxies.has("::ffff:10.0.0.5")) == (True, True)
    assert not proxies.has("10.0.0.16")
    assert proxies.refusal({"x-forwarded-user": "ann", "x-forwarded-groups": "sre"}) is None


@pytest.mark.parametrize("ending", first_of([signal.SIGINT, signal.SIGTERM]))
def test_ctrl_c_ends_it_cleanly(warehouse: Warehouse, ending: signal.Signals) -> None:
    make_table(warehouse, PIPELINE_PROGRESS, [])
    words = [sys.executable, "-m", "quotaflow.pipelines", "serve", "--port", "0"]
    words += ["--set", f"warehouse.path={warehouse.conf.path}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        url = line.split()[2]
        assert url.startswith("http://127.0.0.1:")
        assert get(url, "/find").status == 200
        process.send_signal(ending)
        rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest, errors) == (130, "", "stopped\n")
