"""Commands that do to one input what the pipeline does: decode, parse, pseudonym."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, QuotaflowError, nearest
from quotaflow.pipelines.facts import pushes, request_lines
from quotaflow.pipelines.terminal import output, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.otlp.codecs import UnreadableError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_STDIN = Path("-")


class UnreadableFileError(QuotaflowError):
    """A captured file, or a line of it, that the pipeline would quarantine."""


def decode(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One payload as bytes; - is stdin.")],
    codec: Annotated[
        str,
        typer.Option(
            "--codec",
            help=f"How it is compressed: {' '.join(CODECS)}.",
            autocompletion=lambda: CODECS,
        ),
    ] = "none",
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Print the data points of one telemetry payload.

    Prints one JSON object per line, with the columns of client_metrics, unless another layout is
    given. Uses the decoder and limits of the pipeline. Needs no JVM. Metrics whose text is not
    UTF-8 are left out, and counted on stderr.

    Example: quotaflow decode push.bin --codec zstd
    """
    if codec not in CODECS:
        raise ConfigError(f"--codec {codec} is unknown{nearest(codec, CODECS)}")
    settings = conf.load()
    payload = _bounded(file, settings.ingest.max_line_bytes)
    try:
        points = pushes.payload_points(
            payload, codec, settings.payloads, lambda problem: output.note(f"{file}: {problem}")
        )
    except UnreadableError as error:
        raise UnreadableFileError(f"{file}: {error.reason}: {error.detail}") from None
    output.write(values.rows(points), pushes.COLUMNS, _lines_of_json(layout))


def parse(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Lines of the request log; - is stdin.")
    ],
    *,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Parse lines of a request log to rows of the table requests.

    Prints one JSON object per line, unless another layout is given. Needs no JVM. Reads the
    envelope, the bare line, Kafka's own layout, and lines in the JSON of a shipper; a line without
    a time gets the time of the call. source_offset is the line number.
    Unreadable lines go to stderr as JSON with the reason, and make the exit code 1. Lines left out
    on purpose (forwarded copies, raft, our own shipper) are counted at the end.

    Example: quotaflow parse kafka-request.log | jq .api
    """
    settings = conf.load()
    with _opened(file) as content:
        lines = request_lines.Lines(settings, file.name, datetime.now(UTC), output.note)
        output.write(lines.rows(content), request_lines.COLUMNS, _lines_of_json(layout))
    output.note(lines.summary())
    if lines.unreadable:
        raise typer.Exit(1)


def pseudonym(
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="One of privacy.columns: client_id.")
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The real client id or address.")],
    *,
    conf: options.ConfOptions,
) -> None:
    """Print what tables have for a client id or an address that privacy hides.

    Needs the key of conf's privacy section; there is no way back from a pseudonym to a name.

    Example: quotaflow pseudonym client_id orders-7
    """
    privacy = conf.load().privacy
    hidden = privacy.pseudonyms()
    if hidden is None:
        raise ConfigError("conf hides nothing: privacy.key names no key")
    if not privacy.hides(column):
        raise ConfigError(
            f"{column} is not hidden: privacy.columns are {', '.join(privacy.columns)}"
        )
    output.lines([hidden.pseudonym(column, text)])


def _lines_of_json(layout: Layout) -> Layout:
    """The layout; lines of JSON if no form is given."""
    is_given = layout.is_for_programs or layout.is_wide or layout.is_vertical
    return layout if is_given else replace(layout, as_json=True)


def _bounded(file: Path, max_bytes: int) -> bytes:
    with _opened(file) as content:
        payload = content.read(max_bytes + 1)
    if len(payload) > max_bytes:
        raise UnreadableFileError(f"{file} is over ingest.max_line_bytes = {max_bytes} bytes")
    return payload


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    if file == _STDIN:
        yield sys.stdin.buffer
        return
    try:
        content = file.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    with content:
        yield content
