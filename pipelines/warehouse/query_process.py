"""Answers a query that a person wrote in a process of its own, whose time and memory have an end.

DuckDB computes constants and binds names outside of its own limits. So the kernel bounds the memory
of that process, and this one ends it when its time is over, or at Ctrl-C.
"""

import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

from quotaflow.pipelines import errors
from quotaflow.pipelines.config import Conf, WarehouseSection
from quotaflow.pipelines.errors import DamagedError, NeverMadeError, QueryError, QuotaflowError
from quotaflow.pipelines.terminal import progress
from quotaflow.pipelines.warehouse import readers
from quotaflow.pipelines.warehouse.engine_errors import NO_MEMORY, engine_errors
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.reader import LATE, Reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse, check_address_space

if TYPE_CHECKING:
    import pyarrow as pa

Ask = Callable[[Reader], "pa.RecordBatchReader"]
_START_S = 60
_GRACE_S = 2
"""DuckDB stops most queries by itself: its process is killed this much later."""
_BESIDE_MB, _STACKS_MB = 512, 16
"""What the engine takes beside the memory of queries, and for the stacks of a core's threads."""
_NOT_STARTED = f"the process of the query did not start within {_START_S} s: try again"
_ENGINE = (
    "quotaflow.pipelines.warehouse.local_database",
    "quotaflow.pipelines.warehouse.query_check",
)
"""Modules that each query needs: loaded once for all, where they start no thread."""
_SCHEMA, _BATCH, _ERROR, _FAULT, _END = b"SBEF."


def batches(
    conf: Conf, ask: Ask, begins: Callable[[Callable[[], None]], None] = lambda _: None
) -> "pa.RecordBatchReader":
    """The rows of a query, batch by batch. `ask` is called there: a function of a module, or a
    partial one. `begins` is given what ends the query; any thread may call that.

    Raises what `ask` raises, and QueryError if the process ends before its answer. Reading a batch
    can fail too. A catalog answers in processes of its own.
    """
    if conf.warehouse.catalog_schema:
        reader = readers.open_reader(conf)
        begins(reader.stop)
        return ask(reader)
    import pyarrow as pa  # noqa: PLC0415  --help need not wait for it

    check_address_space()
    child = _Child(conf.warehouse, ask)
    begins(child.kill)
    with progress.shown("computing"):
        content = child.next(_SCHEMA)
    schema = pa.ipc.read_schema(pa.py_buffer(content))
    return pa.RecordBatchReader.from_batches(schema, child.rows(schema))


class _Child:
    """The process of one query. No process and no file stays after the query."""

    def __init__(self, conf: WarehouseSection, ask: Ask) -> None:
        self.conf, self._is_stopped = conf, False
        # Its own exit, or a kill, leaves what does not fit into memory behind.
        try:
            self._scratch = TemporaryDirectory(prefix="quotaflow-", ignore_cleanup_errors=True)
        except OSError as error:
            raise QueryError(f"no place for temporary files (TMPDIR): {error.strerror}") from None
        context = _context()
        self._from, to = context.Pipe(duplex=False)
        arguments = (to, conf, ask, self._scratch.name)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        try:
            self._process.start()
        except OSError as error:
            reason = f"no process for the query: {error} (TMPDIR is {gettempdir()})"
            raise QueryError(reason) from None
        # Nobody may read the answer.
        self.end = weakref.finalize(self, _end, self._process, self._from, self._scratch)
        to.close()
        self._left_s, self._late = float(_START_S), _NOT_STARTED
        self.next(_END)
        self._left_s = float(conf.query_timeout_s + _GRACE_S)
        self._late = LATE.format(conf.query_timeout_s)

    def next(self, kind: int) -> bytes | None:
        """The content of the next message; None if it is the last. Raises what ended the query.

        The time of who reads the rows does not count.
        """
        started = time.monotonic()
        try:
            message = self._received()
        except BaseException:
            self.end()
            raise
        self._left_s -= time.monotonic() - started
        return message[1:] if message[0] == kind else None

    def rows(self, schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
        """The batches that come."""
        import pyarrow as pa  # noqa: PLC0415  as above

        try:
            while (content := self.next(_BATCH)) is not None:
                yield pa.ipc.read_record_batch(pa.py_buffer(content), schema)
        finally:
            self.end()

    def kill(self) -> None:
        """Let the next message be an error. Who reads messages removes the rest."""
        self._is_stopped = True
        self._process.kill()

    def _received(self) -> bytes:
        if not self._from.poll(max(self._left_s, 0)):
            raise QueryError(self._late)
        try:
            message = self._from.recv_bytes()
        except EOFError:
            raise QueryError(self._ended()) from None
        if message[0] in {_ERROR, _FAULT}:
            raise _raised(message)
        return message

    def _ended(self) -> str:
        """Why there is no message."""
        self._process.join()
        code = self._process.exitcode or 0
        if self._is_stopped:
            return "stopped"
        if code >= 0:
            return f"the process of the query ended without an answer (exit code {code})"
        return (
            f"the query ended its process (signal {-code}): it is nested too deep, or needs more "
            f"than {self.conf.query_memory_mb} MiB: simplify it, or allow more with --set "
            "warehouse.query_memory_mb=MIB"
        )


def _end(process: BaseProcess, received: Connection, scratch: "TemporaryDirectory[str]") -> None:
    """Kill the process, if it is there, and remove its files."""
    process.kill()
    process.join()
    received.close()
    scratch.cleanup()


def _context() -> ForkContext | ForkServerContext:
    """How to start a process: in a tenth of a second while this one has no other threads.

    delta-rs has some from its first table on, and cannot work in a copy of such a process.
    """
    if "deltalake" not in sys.modules and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__, *_ENGINE])
    return context


def _raised(message: bytes) -> Exception:
    if message[0] == _FAULT:
        return RuntimeError(message[1:].decode())
    name, words = json.loads(message[1:])
    kind: type[QuotaflowError] = getattr(errors, name)
    return kind(*words)


def _work(to: Connection, conf: WarehouseSection, ask: Ask, scratch: str) -> None:
    """Send the answer: a word that it begins, the schema, its batches, and the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A library that fails writes frames of its own language.
    os.dup2(os.open(os.devnull, os.O_RDWR), sys.__stderr__.fileno() if sys.__stderr__ else 2)
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _bound_memory(conf.query_memory_mb)

    def send(kind: int, content: bytes = b"") -> None:
        to.send_bytes(bytes([kind]) + content)

    with suppress(BrokenPipeError):
        send(_END)
        try:
            with engine_errors("query"):
                answer = ask(FolderReader(Warehouse(conf)))
                send(_SCHEMA, answer.schema.serialize().to_pybytes())
                for batch in answer:
                    send(_BATCH, batch.serialize().to_pybytes())
            send(_END)
        except BrokenPipeError:
            raise
        except QuotaflowError as error:
            send(_ERROR, json.dumps([type(error).__name__, _words(error)]).encode())
        except MemoryError:
            send(_ERROR, json.dumps(["QueryError", [NO_MEMORY]]).encode())
        except Exception:  # a fault of ours: this process has no stderr, so the other raises it
            send(_FAULT, traceback.format_exc().encode())


def _words(error: QuotaflowError) -> list[str]:
    """What makes the same error there."""
    if isinstance(error, NeverMadeError):
        return [error.table, error.location]
    return [error.table, str(error)] if isinstance(error, DamagedError) else [str(error)]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _bound_memory(query_memory_mb: int) -> None:
    """Let the kernel refuse more memory than what queries and the engine may have.

    Only where the kernel says what the process has, as Linux does.
    """
    try:
        now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except OSError:
        return
    cores = os.cpu_count() or 1
    more = (query_memory_mb + _BESIDE_MB + _STACKS_MB * cores) * 1024**2
    limit = now * resource.getpagesize() + more
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))
