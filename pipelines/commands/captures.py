"""Commands that read one captured file as the pipeline would: decode, parse."""

import difflib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, QuotaflowError
from quotaflow.pipelines.terminal import output, values

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_STDIN = Path("-")


class UnreadableFileError(QuotaflowError):
    """A captured file, or lines of it, that the pipeline would quarantine."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("decode")(decode)
    app.command("parse")(parse)


def decode(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One payload as bytes; - is stdin.")],
    codec: Annotated[
        str, typer.Option("--codec", help=f"How it is compressed: {' '.join(CODECS)}.")
    ] = "none",
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Print the data points of one telemetry payload.

    One JSON object a line, by the pipeline's own decoder and bounds; keys are the columns of
    client_metrics. Needs no JVM.

    Example: quotaflow decode push.bin --codec zstd
    """
    if codec not in CODECS:
        near = difflib.get_close_matches(codec, CODECS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {' '.join(CODECS)}"
        raise ConfigError(f"--codec {codec} is unknown ({hint})")
    settings = options.conf(conf, overrides)
    payload = _bounded(file, settings.ingest.max_line_bytes)
    from quotaflow.pipelines.commands import payloads  # noqa: PLC0415  imports pyarrow
    from quotaflow.udfs.otlp.codecs import UnreadableError  # noqa: PLC0415

    try:
        points = payloads.points(payload, codec, settings.payloads)
    except UnreadableError as error:
        raise UnreadableFileError(f"{file}: {error.reason}: {error.detail}") from None
    output.lines(values.json_line(row) for row in values.rows(points))


def parse(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Lines of the request log; - is stdin.")
    ],
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Print the rows that lines of a request log make.

    Rows of the table requests, one JSON object a line; needs a JDK. Takes the envelope, the bare
    line and Kafka's stock layout; where a line has no time, it is now. source_offset is the number
    of the line. Unreadable lines go to stderr, as JSON with the reason, and make the exit code 1;
    lines left out on purpose (forwarded copies, raft, our own shipper) are counted at the end.

    Example: quotaflow parse kafka-request.log | jq .api
    """
    settings = options.conf(conf, overrides)
    with _opened(file) as content:
        from quotaflow.pipelines.commands import request_lines  # noqa: PLC0415  imports pyspark

        lines = request_lines.Lines(settings, file.name, datetime.now(UTC))
        output.lines(values.json_line(row) for row in lines.rows(content))
    output.note(lines.summary())
    if lines.unreadable:
        raise typer.Exit(1)


def _bounded(file: Path, most: int) -> bytes:
    with _opened(file) as content:
        payload = content.read(most + 1)
    if len(payload) > most:
        raise UnreadableFileError(f"{file} is over ingest.max_line_bytes = {most} bytes")
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
