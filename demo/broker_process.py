"""The operating-system process of one broker: tethered to this process, stopped within bounds."""

import subprocess
from pathlib import Path

from quotaflow.pipelines.spark.java_output import first_cause

STOP_TIMEOUT_S = 8.0
"""How long a broker may take to hand over and flush before it is killed."""


class BrokerProcess:
    """A JVM that `Tethered` halts when this process dies, also by kill -9, on every system."""

    def __init__(self, command: list[str], logs: Path) -> None:
        self._command = command
        self._logs = logs
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process runs; it may not answer yet."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process if it does not run; returns at once."""
        if self.is_running:
            return
        self._logs.mkdir(exist_ok=True)
        log = self._logs / "server.log"
        self._log_start = log.stat().st_size if log.exists() else 0
        with (self._logs / "console.log").open("wb") as console:
            # A session of its own: Ctrl-C reaches this process alone, which stops brokers in order.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def terminate(self) -> None:
        """Request a clean stop; returns at once."""
        if self._process and self.is_running:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL, and wait until the process has ended."""
        if self._process:
            self._process.kill()
            self._reap(self._process)

    def await_end(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Wait for the end that `terminate` requested, then kill."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap(self._process)

    def has_started(self) -> bool:
        """Whether Kafka logged that this start is complete."""
        return "Kafka Server started" in self._log()

    def lost_its_port(self) -> bool:
        """Whether it died because another process took one of its ports."""
        output = self._log() + self._console()
        return "Address already in use" in output or "Port already in use" in output

    def first_cause(self) -> str:
        """Why it ended, by its log and its console."""
        return first_cause(f"{self._log()}\n{self._console()}")

    def _log(self) -> str:
        """The log of this run; a log that was rotated meanwhile is read from its beginning."""
        path = self._logs / "server.log"
        if not path.exists():
            return ""
        with path.open("rb") as log:
            log.seek(self._log_start if self._log_start <= path.stat().st_size else 0)
            return log.read().decode(errors="replace")

    def _console(self) -> str:
        path = self._logs / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @staticmethod
    def _reap(process: subprocess.Popen[bytes]) -> None:
        process.wait()
        if process.stdin:
            process.stdin.close()
