"""README and docs: every command in them runs, on tables and cluster of the demo's traffic."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.spark import frames, session
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import TELEMETRY_SUBSCRIPTIONS

from ..command_line import Command, in_options
from ..documented_commands import PAGES, in_blocks, words
from ..own_process import quotaflow
from ..rows import SOFTWARE, row

READ_TABLES = {
    *("tables", "describe", "show", "sql", "ddl", "metrics", "jobs", "why", "what-if"),
    "completion",
}
WITHOUT_CONF = {"ddl", "metrics", "jobs", "decode", "completion"}
GOLDEN = Path(__file__).parents[1] / "golden"
LOOK_S = 20
# Codes that say what was found, beside 0: what is missing, changes that wait, no such plan, and no
# such config to take over.
FINDING_CODES = {
    **{"doctor": {1}, "status": {1}, "check": {1}, "plan": {3}, "apply": {1, 2}},
    "adopt user/mallory": {2},
}
ENDLESS = re.compile(r"^quotaflow serve|--every|--watch|--for ")
# A shell of queries, which has tests of its own on a terminal.
SHELL = "quotaflow sql"
COMMANDS = sorted(
    {command for page in PAGES for command in in_blocks(page) if "..." not in command} - {SHELL}
)


@pytest.mark.parametrize("text", [t for t in COMMANDS if words(t)[0] in READ_TABLES])
def test_a_command_that_reads_tables_runs(text: str, filled: Path, command: Command) -> None:
    arguments = words(text)
    place = [] if arguments[0] in WITHOUT_CONF else in_options(f"warehouse.path={filled}")
    assert command(*without_conf(arguments), *place).out


def without_conf(arguments: list[str]) -> list[str]:
    at = arguments.index("--conf") if "--conf" in arguments else len(arguments)
    return [*arguments[:at], *arguments[at + 2 :]]


@pytest.fixture(scope="module")
def place(cluster: LocalCluster, filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: conf files, a move, a payload, lines, and tables to write into."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(filled, folder / "home" / "warehouse")
    properties = cluster.client_properties("admin")
    conf = {
        "kafka": {"properties": properties | {"sasl.jaas.config": "env:READER_JAAS"}},
        "warehouse": {"path": str(folder / "home" / "warehouse")},
        "plan": {"max_input_age_s": 86_400},
        "alerts": {"receivers": [{"name": "hook", "url": "env:READER_URL"}]},
    }
    for name in ("conf.yaml", "setup/conf.yaml"):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(conf))
    move = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    (folder / "move.json").write_text(json.dumps({"version": 1, "partitions": [move]}))
    shutil.copy(GOLDEN / "lines" / "fetch.jsonl", folder / "requests.jsonl")
    payload = next(file for file in sorted((GOLDEN / "otlp").rglob("*zstd*")) if file.is_file())
    shutil.copy(payload, folder / "payload.bin")
    add_live_client(folder / "home" / "warehouse", cluster.cluster_id)
    return folder


def add_live_client(folder: Path, cluster_id: str) -> None:
    """A client named as pages name one: those of the traffic have ended.

    By Spark: delta-rs does not write to clustered tables.
    """
    table, given = TELEMETRY_SUBSCRIPTIONS, {"cluster_id": cluster_id, "push_interval_ms": 60_000}
    given |= {"client_instance_id": "AAAAAAAAQACAAAAAAAAAAQ", "client_id": "orders"}
    client = row(table.name, datetime.now(UTC), given, error_code=0, **SOFTWARE)
    rows = pa.Table.from_pylist([client], schema=table.arrow)
    frame = frames.from_arrow(session.get(config.SparkSection()), rows)
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    warehouse.write(frame.write.format("delta").mode("append"), table.name)


@pytest.mark.faults
@pytest.mark.parametrize(
    "command", [t for t in COMMANDS if words(t)[0] not in {*READ_TABLES, "demo"}]
)
def test_a_command_that_needs_more_runs(
    command: str, place: Path, cluster: LocalCluster, webhook: str
) -> None:
    arguments = [_replaced(word, cluster) for word in words(command)]
    if arguments[0] == "init":  # the login is this cluster's, not the page's
        arguments = [
            word for at, word in enumerate(arguments) if "--set" not in arguments[at - 1 : at + 1]
        ]
        arguments = [*arguments, "--force", "--conf", "conf.yaml"]
    elif "--conf" not in arguments and arguments[0] not in WITHOUT_CONF:
        arguments = [*arguments, "--conf", "conf.yaml"]
    if arguments[0] == "pseudonym":
        arguments = [*arguments, *in_options("privacy.key=env:READER_KEY")]
    if arguments[0] == "serve":  # a page's port may be taken on this machine: the last one counts
        arguments = [*arguments, "--port", "0"]
    secrets = {
        "READER_JAAS": cluster.client_properties("admin")["sasl.jaas.config"],
        "READER_KEY": "k" * 32,
        "READER_URL": webhook,
    }
    process = subprocess.Popen(
        quotaflow(*arguments),
        cwd=place,
        env=os.environ | {"QUOTAFLOW_HOME": str(place / "home")} | secrets,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    of_commands = (
        codes for text, codes in FINDING_CODES.items() if command.startswith(f"quotaflow {text}")
    )
    codes = {0}.union(*of_commands)
    if ENDLESS.search(command):
        codes |= {130}
        try:
            out, err = process.communicate(timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
    else:
        out, err = process.communicate(timeout=600)
    assert process.returncode in codes, f"{shlex.join(arguments)}: {out[-500:]} {err[-1500:]}"
    assert "Traceback" not in out + err


def _replaced(word: str, cluster: LocalCluster) -> str:
    """A word of a page with placeholders of the reader's own cluster replaced."""
    return {"broker-1:9093": cluster.bootstrap_servers, "ID": cluster.cluster_id}.get(word, word)
