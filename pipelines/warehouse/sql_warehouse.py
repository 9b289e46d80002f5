"""Runs statements in a SQL warehouse of Databricks, by its Statement Execution API.

https://docs.databricks.com/api/statement-execution/v1
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import ConfigError, MissingToolError, QueryError, WrongQueryError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.warehouse.reader import LATE
from quotaflow.schemas.table import typed

if TYPE_CHECKING:
    import pyarrow as pa
    from databricks.sdk.service.sql import StatementExecutionAPI, StatementResponse

_WAIT_S, _POLL_S = 30, 0.5
_DOWNLOAD_S = 60
_WRONG = "BAD_REQUEST"
_CLOCK = "SELECT current_timezone() AS zone"
_UTC = ("UTC", "Etc/UTC", "Z", "GMT", "+00:00")


@dataclass(frozen=True)
class SqlWarehouse:
    """One SQL warehouse; the login is that of Databricks' own tools, by profile or environment."""

    warehouse_id: str
    timeout_s: int
    _stopped: threading.Event = field(default_factory=threading.Event, compare=False)
    _running: set[str] = field(default_factory=set, repr=False, compare=False)
    _checking: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _zones: list[str] = field(default_factory=list, repr=False, compare=False)

    def run(self, statement: str) -> "pa.Table":
        """All rows of a statement. Raises as `CatalogEngine.run`.

        Raises ConfigError for a login that fails, and for a warehouse whose times are not in UTC.
        """
        self._check_zone()
        return self._rows(statement)

    def stop(self) -> None:
        """End statements that other threads run, and let no other begin."""
        self._stopped.set()
        for statement_id in list(self._running):
            with suppress(Exception):
                self._api.cancel_execution(statement_id)

    def _check_zone(self) -> None:
        """Raise ConfigError for a session in another zone: dates of times would be wrong."""
        with self._checking:
            if not self._zones:
                self._zones.append(str(self._rows(_CLOCK)["zone"][0].as_py()))
        if self._zones[0] not in _UTC:
            raise ConfigError(
                f"the SQL warehouse {self.warehouse_id} has the time zone {self._zones[0]}, and "
                "tables have times in UTC: set its SQL configuration parameter TIMEZONE to UTC"
            )

    def _rows(self, statement: str) -> "pa.Table":
        import pyarrow as pa  # noqa: PLC0415  --help need not wait for it

        api = self._api
        with _errors():
            done = self._done(statement)
            manifest, result = done.manifest, done.result
            if manifest is not None and manifest.truncated:
                raise QueryError("the SQL warehouse cut the answer: ask for fewer rows")
            parts = []
            links = list(result.external_links or ()) if result is not None else []
            while links:
                link = links.pop(0)
                parts.append(_downloaded(str(link.external_link), link.http_headers or {}))
                if not links and link.next_chunk_index is not None:
                    chunk = api.get_statement_result_chunk_n(
                        str(done.statement_id), link.next_chunk_index
                    )
                    links = list(chunk.external_links or ())
        return pa.concat_tables(parts) if parts else _empty(done)

    def _done(self, statement: str) -> "StatementResponse":
        """The statement once it has succeeded."""
        from databricks.sdk.service import sql  # noqa: PLC0415  an extra

        if self._stopped.is_set():
            raise QueryError("stopped")
        until = time.monotonic() + self.timeout_s
        done = self._api.execute_statement(
            statement,
            self.warehouse_id,
            disposition=sql.Disposition.EXTERNAL_LINKS,
            format=sql.Format.ARROW_STREAM,
            wait_timeout=f"{min(_WAIT_S, max(5, self.timeout_s))}s",
            on_wait_timeout=sql.ExecuteStatementRequestOnWaitTimeout.CONTINUE,
        )
        statement_id = str(done.statement_id)
        self._running.add(statement_id)
        try:
            while _state(done) in {"PENDING", "RUNNING"}:
                self._wait(until)
                done = self._api.get_statement(statement_id)
        except BaseException:
            # Also Ctrl-C: nobody waits for its rows any more.
            with suppress(Exception):
                self._api.cancel_execution(statement_id)
            raise
        finally:
            self._running.discard(statement_id)
        if _state(done) != "SUCCEEDED":
            raise _failure(done)
        return done

    def _wait(self, until: float) -> None:
        """Wait before the next look. Raises QueryError after `stop`, and when the time is over."""
        if self._stopped.wait(_POLL_S):
            raise QueryError("stopped")
        if time.monotonic() > until:
            raise QueryError(LATE.format(self.timeout_s))

    @cached_property
    def _api(self) -> "StatementExecutionAPI":
        try:
            from databricks.sdk import WorkspaceClient  # noqa: PLC0415  an extra
        except ImportError:
            raise MissingToolError(
                f"databricks-sdk is not installed: {extras.install('databricks')}"
            ) from None
        # It warns of hosts that do not describe themselves, which is no fault.
        logging.getLogger("databricks.sdk").setLevel(logging.ERROR)
        try:
            client = WorkspaceClient(product="quotaflow", product_version="0")
        # So it says that there is no login, or that it is over.
        except (ValueError, OSError) as error:
            message = failures.one_line(error)
            raise ConfigError(f"no login for Databricks: {message}") from None
        return client.statement_execution


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors of the SDK and of downloads within the block into one line."""
    import requests  # noqa: PLC0415  of the SDK
    from databricks.sdk.errors import PermissionDenied, Unauthenticated  # noqa: PLC0415  an extra
    from databricks.sdk.errors.base import DatabricksError  # noqa: PLC0415
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        yield
    except (Unauthenticated, PermissionDenied) as error:
        raise ConfigError(
            f"Databricks refuses the login or its rights: {failures.one_line(error)}"
        ) from None
    except DatabricksError as error:
        raise QueryError(failures.one_line(error)) from None
    # A link is a secret while it lasts.
    except requests.RequestException as error:
        raise QueryError(f"Databricks cannot be reached: {type(error).__name__}") from None
    except (OSError, ArrowException) as error:
        raise QueryError(f"Databricks gives no answer: {failures.one_line(error)}") from None


def _state(done: "StatementResponse") -> str:
    return done.status.state.value if done.status and done.status.state else ""


def _failure(done: "StatementResponse") -> QueryError:
    error = done.status.error if done.status else None
    message = (error.message if error else None) or f"ended as {_state(done)}"
    code = error.error_code.value if error and error.error_code else ""
    kind = WrongQueryError if code == _WRONG else QueryError
    return kind(failures.one_line(QueryError(message)))


def _downloaded(link: str, headers: dict[str, str]) -> "pa.Table":
    """The rows of a link. It has its own login in it, and refuses another."""
    import pyarrow as pa  # noqa: PLC0415  as above
    import requests  # noqa: PLC0415  of the SDK

    with requests.Session() as session:
        # Without it a file .netrc would add a login.
        session.trust_env = False
        answer = session.get(link, headers=headers, timeout=_DOWNLOAD_S)
        answer.raise_for_status()
    with pa.ipc.open_stream(answer.content) as stream:
        return stream.read_all()


def _empty(done: "StatementResponse") -> "pa.Table":
    """The columns of an answer without rows, of which there is no link."""
    import pyarrow as pa  # noqa: PLC0415  as above

    schema: Any = done.manifest.schema if done.manifest else None
    columns = schema.columns or () if schema else ()
    return pa.schema([(each.name, _type(each.type_text)) for each in columns]).empty_table()


def _type(text: str | None) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415  as above

    try:
        return typed(text or "")[0]
    except ValueError:
        return pa.string()
