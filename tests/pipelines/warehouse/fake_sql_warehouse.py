"""The protocol of a SQL warehouse (Statement Execution API), answered by a local Spark session."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.demo.ports import LOOPBACK
from quotaflow.pipelines.spark.spark_errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKEN, WAREHOUSE = "dapi-of-the-test", "4711"
_STATEMENTS = "/api/2.0/sql/statements"
_ROWS = 3
"""Rows of a chunk: few, so that answers have several."""


@dataclass
class FakeSqlWarehouse:
    """What is asked, and how it is answered."""

    spark: "SparkSession"
    zone: str = "UTC"
    polls: int = 1
    """How often a statement is still running."""
    statements: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Requests with a wrong login: of the API without its token, of a link with one."""
    polled: int = 0
    url: str = ""
    _answers: dict[str, Any] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def execute(self, body: dict[str, Any]) -> dict[str, Any]:
        """A new statement."""
        assert body["warehouse_id"] == WAREHOUSE
        assert (body["disposition"], body["format"]) == ("EXTERNAL_LINKS", "ARROW_STREAM")
        statement_id = f"s{next(self._ids)}"
        self.statements.append(body["statement"])
        self._left[statement_id] = self.polls
        text = body["statement"].replace("current_timezone()", f"'{self.zone}'")
        running = threading.Thread(target=self._run, args=(statement_id, text))
        running.start()
        # A client ends a request after a minute and sends it again, so none may wait for Spark.
        running.join(float(body["wait_timeout"].removesuffix("s")))
        return self.status(statement_id)

    def _run(self, statement_id: str, text: str) -> None:
        self.spark.addTag(statement_id)
        try:
            frame = self.spark.sql(text)
            types = [field.dataType.simpleString() for field in frame.schema]
            self._answers[statement_id] = (frame.toArrow(), types)
        except spark_errors() as error:
            self._answers[statement_id] = str(error)
        finally:
            self.spark.removeTag(statement_id)

    def cancel(self, statement_id: str) -> dict[str, Any]:
        """Nobody waits for its rows any more: Spark's jobs of the statement end."""
        self.cancelled.append(statement_id)
        self.spark.interruptTag(statement_id)
        return {}

    def status(self, statement_id: str) -> dict[str, Any]:
        """A statement now."""
        self.polled += 1
        if statement_id in self.cancelled:
            return {"statement_id": statement_id, "status": {"state": "CANCELED"}}
        self._left[statement_id] -= 1
        if self._left[statement_id] >= 0 or statement_id not in self._answers:
            return {"statement_id": statement_id, "status": {"state": "RUNNING"}}
        answer = self._answers[statement_id]
        if isinstance(answer, str):
            error = {"error_code": "BAD_REQUEST", "message": answer}
            return {"statement_id": statement_id, "status": {"state": "FAILED", "error": error}}
        rows, types = answer
        columns = [
            {"name": name, "position": i, "type_text": kind.upper()}
            for i, (name, kind) in enumerate(zip(rows.column_names, types, strict=True))
        ]
        return {
            "statement_id": statement_id,
            "status": {"state": "SUCCEEDED"},
            "manifest": {
                "format": "ARROW_STREAM",
                "schema": {"column_count": len(columns), "columns": columns},
                "total_row_count": rows.num_rows,
                "truncated": False,
            },
            "result": self.chunk(statement_id, 0),
        }

    def chunk(self, statement_id: str, index: int) -> dict[str, Any]:
        """The link of a chunk; none for an answer without rows."""
        rows, _ = self._answers[statement_id]
        if rows.num_rows == 0:
            return {}
        link = {
            "chunk_index": index,
            "external_link": f"{self.url}/chunks/{statement_id}/{index}",
            "expiration": "2100-01-01T00:00:00Z",
        }
        if (index + 1) * _ROWS < rows.num_rows:
            link["next_chunk_index"] = index + 1
        return {"external_links": [link]}

    def content(self, statement_id: str, index: int) -> bytes:
        """A chunk as a stream of Arrow."""
        rows, _ = self._answers[statement_id]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.slice(index * _ROWS, _ROWS))
        return bytes(sink.getvalue())


class _Handler(BaseHTTPRequestHandler):
    fake: FakeSqlWarehouse

    def do_GET(self) -> None:
        self._handle(None)

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        self._handle(json.loads(self.rfile.read(size) or b"{}"))

    def _handle(self, body: dict[str, Any] | None) -> None:
        login = self.headers.get("Authorization")
        parts = self.path.partition("?")[0].removeprefix(_STATEMENTS).strip("/").split("/")
        if self.path.startswith("/chunks/"):
            if login:
                self.fake.refused.append(self.path)
                self._send(400, b"{}")
            else:
                _, _, statement_id, index = self.path.split("/")
                self._send(200, self.fake.content(statement_id, int(index)))
        elif not self.path.startswith(_STATEMENTS):
            self._send(404, b"{}")
        elif login != f"Bearer {TOKEN}":
            self.fake.refused.append(self.path)
            error = {"error_code": "UNAUTHENTICATED", "message": "Invalid access token."}
            self._send(401, json.dumps(error).encode())
        else:
            self._send(200, json.dumps(self._answer(parts, body)).encode())

    def _answer(self, parts: list[str], body: dict[str, Any] | None) -> dict[str, Any]:
        match parts:
            case [""] if body is not None:
                return self.fake.execute(body)
            case [statement_id]:
                return self.fake.status(statement_id)
            case [statement_id, "cancel"]:
                return self.fake.cancel(statement_id)
            case [statement_id, "result", "chunks", index]:
                return self.fake.chunk(statement_id, int(index))
        raise AssertionError(parts)

    def _send(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing: the test says what failed."""


@contextmanager
def serving(fake: FakeSqlWarehouse) -> Iterator[dict[str, str]]:
    """Answer at a port; yields the environment of a login there."""

    server = ThreadingHTTPServer((LOOPBACK, 0), type("Handler", (_Handler,), {"fake": fake}))
    fake.url = f"http://{LOOPBACK}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {"DATABRICKS_HOST": fake.url, "DATABRICKS_TOKEN": TOKEN}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
