"""Writes the rows of an answer to a file of Parquet, with the types that the answer has."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.engine_errors import engine_errors

if TYPE_CHECKING:
    import pyarrow as pa

_ENDING = ".parquet"


def check(out: Path, *, is_plain: bool) -> None:
    """Raise ConfigError for another kind of file, and for options that print rows."""
    if out.suffix != _ENDING:
        raise ConfigError(
            f"--out {out}: name a file FILE{_ENDING}; --csv and --json print to stdout"
        )
    if not is_plain:
        raise ConfigError("--out and options that print rows exclude each other: give one")


def write(batches: "pa.RecordBatchReader", out: Path, query: str) -> int:
    """Write all rows; returns their number. The file is there once it is whole.

    Raises ConfigError if it cannot be written, QueryError if the answer fails.
    """
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415  --help need not wait for it

    new, rows = out.with_name(f".{out.name}.{os.getpid()}"), 0
    try:
        with (
            new.open("wb") as file,
            engine_errors(query),
            ParquetWriter(file, batches.schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        new.replace(out)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from None
    finally:
        new.unlink(missing_ok=True)
    return rows
