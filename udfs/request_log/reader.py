"""One reading of texts by DuckDB: JSON to nested columns of text, and these to typed columns."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas import events
from quotaflow.schemas.table import STRING
from quotaflow.udfs.engine.connections import connect
from quotaflow.udfs.engine.database import DEFAULT_MEMORY_MB
from quotaflow.udfs.request_log import bodies, partitions, statements
from quotaflow.udfs.request_log.columns import READ, TELEMETRY, UNEXPECTED_SHAPE
from quotaflow.udfs.request_log.options import LineOptions

Ints = npt.NDArray[np.int64]


class Reader:
    """A database that reads texts. Use it from one thread; after an error make another."""

    def __init__(self, options: LineOptions) -> None:
        self._options = options
        # Texts that need more memory are read in halves, as the parser does after any error.
        self._connection = connect(threads=1, memory_limit=f"{DEFAULT_MEMORY_MB}MiB")
        self._connection.execute(statements.text("macros"))

    def read(self, texts: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The texts that are request lines as READ, and TELEMETRY of them, both in order.

        `texts` are rows of `records.numbered_texts`, at least one. Raises duckdb.Error.
        """
        self._connection.register("texts", texts)
        self._connection.execute(statements.PARSED)
        lines = self._lines()
        places = np.full(texts["line"][-1].as_py() + 1, -1)
        places[lines["line"].to_numpy()] = np.arange(lines.num_rows)
        lists, misshapen = self._lists(lines, places)
        added = {
            **lists,
            "body": self._bodies(lines["api"], places),
            "detail": pa.nulls(lines.num_rows, STRING),
            "reason": _with_reason(lines["reason"], places[misshapen]),
        }
        columns = [
            (added[field.name] if field.name in added else lines[field.name]).cast(field.type)
            for field in READ
        ]
        return pa.Table.from_arrays(columns, schema=READ), self._telemetry(lines["api"])

    def _lines(self) -> pa.Table:
        options = self._options
        parameters = {
            "time_zone": options.time_zone,
            "max_clock_skew_us": options.max_clock_skew_s * 1_000_000,
            "controller_listeners": list(options.controller_listeners),
            "raft_apis": list(events.RAFT_APIS),
            "shippers": list(options.shippers),
            "brokers": list(options.brokers),
            "shipper_principals": list(options.shipper_principals),
        }
        sql = statements.lines(dict(options.sampling), has_zone=options.has_zone)
        return self._table(sql, parameters)

    def _lists(self, lines: pa.Table, places: Ints) -> tuple[dict[str, pa.Array], Ints]:
        """The lists of partitions, and the lines whose lists are of another shape."""
        api = lines["api"]
        is_fetch, is_typed = (
            pc.fill_null(pc.is_in(api, pa.array(apis)), False).to_numpy()
            for apis in (["FETCH"], list(statements.TYPED))
        )
        if not is_typed.any():
            nothing = {
                n: pa.nulls(len(api), READ.field(n).type) for n in ("partitions", "forgotten")
            }
            return nothing, np.empty(0, np.int64)
        requested, answered, forgotten = (
            self._table(sql)
            for sql in (statements.REQUESTED, statements.ANSWERED, statements.FORGOTTEN)
        )
        lists = {
            "partitions": partitions.merged(requested, answered, is_typed, places),
            "forgotten": partitions.forgotten(
                forgotten, is_fetch & lines["has_forgotten"].to_numpy(), places
            ),
        }
        bad = [
            side.filter(side["is_bad"])["line"].to_numpy()
            for side in (requested, answered, forgotten)
        ]
        doubtful = self._table(statements.DOUBTFUL).to_pylist()
        odd = [row["line"] for row in doubtful if not bodies.has_lists(row["text"], row["api"])]
        return lists, np.concatenate([*bad, np.array(odd, np.int64)]).astype(np.int64)

    def _telemetry(self, apis: pa.ChunkedArray) -> pa.Table:
        # To plan a query takes as long as to read many lines.
        if not _any_of(apis, events.TELEMETRY_APIS):
            return TELEMETRY.empty_table()
        return self._table(statements.telemetry()).cast(TELEMETRY)

    def _bodies(self, apis: pa.ChunkedArray, places: Ints) -> pa.Array:
        chosen = bodies.apis(self._options.without_body)
        if not _any_of(apis, chosen):
            return pa.nulls(len(apis), STRING)
        parameters = {"max_body_bytes": self._options.max_body_bytes, "body_apis": chosen}
        kept = self._table(bodies.BODIES, parameters)
        at = np.full(len(apis), -1)
        at[places[kept["line"].to_numpy()]] = np.arange(kept.num_rows)
        return kept["body"].combine_chunks().take(pa.array(at, mask=at < 0))

    def _table(self, sql: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        # A relation binds its text twice, which takes as long as to read hundreds of lines.
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE result AS {sql}", parameters or {})
        return self._connection.sql("FROM result").to_arrow_table()


def _any_of(apis: pa.ChunkedArray, chosen: Sequence[str]) -> bool:
    return bool(pc.any(pc.is_in(apis, pa.array(chosen, STRING))).as_py())


def _with_reason(reasons: pa.ChunkedArray, at: Ints) -> pa.Array:
    """The reasons, and UNEXPECTED_SHAPE at some rows that have none."""
    if not len(at):
        return reasons
    is_odd = np.zeros(len(reasons), bool)
    is_odd[at] = True
    return pc.coalesce(reasons, pc.if_else(pa.array(is_odd), UNEXPECTED_SHAPE, None))
