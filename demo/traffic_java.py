"""Java clients of the demo: Kafka's own tools as child processes that end with this one."""

import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from quotaflow.demo.credentials import write_private
from quotaflow.demo.traffic_report import JAVA, ClientReport
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.spark.java_output import first_cause

_TOOLS = "org.apache.kafka.tools"
_SENT = re.compile(r"^(\d+) records sent, .* 99\.9th", re.MULTILINE)
_CONSUMED = re.compile(r"Processed a total of (\d+) messages")
_TIMEOUT_S = 120.0
_LOOK_EVERY_S = 0.1
_IDLE_S = 6.0
"""A Java producer mostly closes without its terminating push (KAFKA-17731 removed the wait). A
producer that must report every record stays idle past its next push first."""

_PATIENT = {"request.timeout.ms": "30000", "retries": "2147483647", "delivery.timeout.ms": "40000"}
"""ConsoleProducer drops a connection after 1.5 s and a record after 3 retries, and with the
connection a push in progress; these are a producer's own defaults, with a shorter end."""


class JavaClient:
    """One Java client: its private properties file, its process, and the output."""

    def __init__(self, stage: Stage, user: str, client_id: str) -> None:
        self._stage = stage
        self._user = user
        self._client_id = client_id
        self._folder = stage.cluster.folder / "clients"
        self._folder.mkdir(exist_ok=True)

    def report(self) -> ClientReport:
        """A report to fill in."""
        return ClientReport(
            principal=f"User:{self._user}", client_id=self._client_id, software=JAVA
        )

    def run(
        self,
        tool: str,
        *args: str,
        config: Mapping[str, str],
        lines: Iterable[bytes] | None = None,
    ) -> str:
        """Run the tool to its end, or to the stage's. Returns the output. KafkaError if it fails.

        Its standard input is `lines`, and it ends where they do; without lines it ends with this
        process at the latest.
        """
        properties = {
            **self._stage.cluster.client_properties(self._user),
            "client.id": self._client_id,
            **config,
        }
        private = write_private(self._folder / f"{self._client_id}.properties", properties)
        tether = ("quotaflow.Tethered",) if lines is None else ()
        command = self._stage.cluster.java_command(
            *(*tether, f"{_TOOLS}.{tool}", *args),
            *("--bootstrap-server", self._stage.cluster.bootstrap_servers),
            *("--command-config", str(private)),
        )
        output = self._folder / f"{self._client_id}.log"
        with (
            output.open("wb") as log,
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # kept open: the child ends with this process
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            if lines is not None:
                self._feed(process, lines)
            self._await_end(process)
        return self._output_text(output, process.returncode)

    def _feed(self, process: "subprocess.Popen[bytes]", lines: Iterable[bytes]) -> None:
        assert process.stdin is not None
        try:
            for line in lines:
                process.stdin.write(line)
                process.stdin.flush()
            process.stdin.close()
        except BrokenPipeError:
            return  # its exit code and output say why

    def _await_end(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        try:
            while process.poll() is None:
                if self._stage.stop.wait(_LOOK_EVERY_S) or time.monotonic() > deadline:
                    return
        finally:
            process.kill()

    def _output_text(self, output: Path, exit_code: int) -> str:
        text = output.read_text(encoding="utf-8", errors="replace")
        if exit_code != 0 and not self._stage.stop.is_set():
            raise KafkaError(f"{self._client_id} failed ({exit_code}): {first_cause(text)}")
        return text


def steady(
    stage: Stage, user: str, client_id: str, topic: str, *, records: int, bytes_each: int
) -> ClientReport:
    """ConsoleProducer at an even pace: one idempotent producer that pushes all its counts."""
    client = JavaClient(stage, user, client_id)
    sent = 0

    def lines() -> Iterator[bytes]:
        nonlocal sent
        for sent, _ in enumerate(stage.paced(records), 1):
            yield b"%0*d\n" % (bytes_each, sent)
        stage.stop.wait(_IDLE_S)

    client.run(
        "ConsoleProducer",
        *("--topic", topic),
        config={"enable.idempotence": "true", "linger.ms": "20", **_PATIENT},
        lines=lines(),
    )
    return replace(client.report(), records_acked={topic: sent}, producer_ids=1)


def transactional(
    stage: Stage, user: str, client_id: str, topic: str, *, records: int, bytes_each: int
) -> ClientReport:
    """ProducerPerformance at an even pace: one transactional producer."""
    client = JavaClient(stage, user, client_id)
    output = client.run(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(bytes_each)),
        *("--throughput", str(max(1, round(records / stage.duration_s)))),
        *("--transactional-id", client_id),
        config={"enable.idempotence": "true", "linger.ms": "20"},
    )
    sent = _SENT.findall(output)
    return replace(
        client.report(),
        records_acked={topic: int(sent[-1]) if sent else 0},
        producer_ids=1 if sent else 0,
    )


def consume(
    stage: Stage, user: str, client_id: str, topic: str, *, records: int, rack: str, group: str
) -> ClientReport:
    """ConsoleConsumer from the beginning of a topic until `records` have come."""
    client = JavaClient(stage, user, client_id)
    output = client.run(
        "consumer.ConsoleConsumer",
        *("--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", str(records), "--timeout-ms", str(int(_TIMEOUT_S * 500))),
        *("--formatter-property", "print.value=false"),
        config={"client.rack": rack},
    )
    consumed = _CONSUMED.search(output)
    return replace(
        client.report(),
        records_consumed={topic: int(consumed[1]) if consumed else 0},
        rack=rack,
        group=group,
    )
