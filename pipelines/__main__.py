"""The command `quotaflow`: all its commands, and errors as one line and an exit code."""

import atexit
import errno
import gc
import io
import locale
import logging
import os
import re
import sys
import time
from contextlib import suppress
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters
from typer.exceptions import TyperException

from quotaflow.pipelines import extras, interrupts
from quotaflow.pipelines.commands import index
from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QuotaflowError
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.spark_errors import bridge_errors, jvm_ended
from quotaflow.pipelines.terminal import logs, output

_REPORTED: tuple[type[Exception], ...] = (
    QuotaflowError,
    TyperException,
    OSError,
    MemoryError,
    ImportError,
    RuntimeError,
)
_REMEDIES = {
    errno.ENOSPC: "free some where the tables are, then run it again",
    errno.EDQUOT: "free some where the tables are, then run it again",
    errno.EFBIG: "let this process write larger files (ulimit -f)",
    errno.EMFILE: "let this process open more files (ulimit -n)",
    errno.EROFS: "make the place of the tables writable",
}
_NO_ROOM = re.compile("failed to map segment|cannot allocate memory|can't start new thread", re.I)
_MORE_MEMORY = "allow this process more memory, address space (ulimit -v) or threads (ulimit -u)"
_NEW_OBJECTS = 100_000
_SHORT_S = 10.0
# Packages above this one, such as the demo, add their commands here: pipelines may not import them.
ENTRY_POINTS = "quotaflow.commands"


def app() -> typer.Typer:
    """The commands of this package."""
    commands = typer.Typer(
        name="quotaflow",
        cls=index.Commands,
        help=(
            "What Kafka brokers say about their clients, as tables, explanations and safe config "
            "changes. Exit codes: 0 done, 1 failed, 2 wrong use or conf, 3 the plan has changes "
            "waiting, 130 Ctrl-C."
        ),
        add_completion=False,
        rich_markup_mode=None,  # plain help takes half the time, and shows [JOB] as it is
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands.callback()(_quotaflow)
    return commands


def add_others(commands: typer.Typer, arguments: list[str]) -> None:
    """Add commands of other packages, unless one of our own is called, which saves time."""
    name = _called(arguments)
    if name not in index.COMMANDS:
        from importlib.metadata import entry_points  # noqa: PLC0415  only for these commands

        for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
            try:
                entry.load()(commands)
            except ModuleNotFoundError:
                # Other commands, and the help, do not need the packages of this one.
                if entry.name == name:
                    raise


def _called(arguments: list[str]) -> str | None:
    """The command that a command line calls, behind the options of all commands."""
    words = iter(arguments)
    for word in words:
        if word == "--log-format":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def execute(arguments: list[str]) -> int:
    """Run one command line; returns its exit code. Expected errors are one line.

    Without arguments it shows the help.
    """
    arguments = arguments or ["--help"]
    commands = app()
    try:
        add_others(commands, arguments)
        return _done(commands, arguments)
    except BaseException as raised:
        if interrupts.is_just_pressed() or isinstance(raised, KeyboardInterrupt | typer.Abort):
            output.note("stopped")
            return interrupts.EXIT_CODE
        if not isinstance(raised, _REPORTED + bridge_errors()):
            raise
        error = failures.as_error(raised) or raised
        line = jvm_ended() or _line(error, arguments)
        if line is None:
            raise
        if line:
            output.error(line)
        return getattr(error, "exit_code", 1)


def _line(error: Exception, arguments: list[str]) -> str | None:
    """The line for an error: "" if typer printed it, None for a bug of quotaflow."""
    match error:
        case NeverMadeError():
            from quotaflow.pipelines.jobs import fillers  # noqa: PLC0415  --help needs no tables

            return f"{error}: {fillers.hint(error.table)}"
        case QuotaflowError():
            return str(error)
        case ModuleNotFoundError():
            extra = "demo" if _called(arguments) == "demo" else "local"
            return f"{error.name} is not installed: {extras.install(extra)}"
        case TyperException():
            message = _with_value(error)
            where = "; quotaflow tables WORD finds what answers a question"
            more = where if message and message.startswith("No such command") else ""
            return message and f"{message} (quotaflow --help lists what there is{more})"
        case OSError() if error.errno in _REMEDIES:
            return f"{error.strerror}: {_REMEDIES[error.errno]}"
    return _memory_line(error)


def _memory_line(error: Exception) -> str | None:
    """The line for an error by want of memory, of address space or of threads."""
    is_it = (
        isinstance(error, MemoryError)
        or getattr(error, "errno", None) == errno.ENOMEM
        or (isinstance(error, ImportError | RuntimeError) and _NO_ROOM.search(str(error)))
    )
    return f"{error or 'no memory is left'}: {_MORE_MEMORY}" if is_it else None


def _with_value(error: TyperException) -> str:
    """Typer's message, with the value, which Typer omits for types that pydantic validates."""
    from pydantic import ValidationError  # noqa: PLC0415  --help needs none

    message, cause = error.format_message(), error.__cause__
    if not isinstance(cause, ValidationError):
        return message
    given = cause.errors(include_url=False)[0]["input"]
    return message.replace("Invalid value for", f"Invalid value {given!r} for", 1)


def _done(commands: typer.Typer, arguments: list[str]) -> int:
    # Typer knows the shells that complete once it has made options that we do not offer.
    get_completion_inspect_parameters()
    code: int = commands(arguments, prog_name="quotaflow", standalone_mode=False) or 0
    # Typer handles Ctrl-C itself, and prints nothing.
    if code == interrupts.EXIT_CODE:
        output.note("stopped")
    return code


def main() -> None:
    """The console script, and the entry point of tasks on Databricks."""
    # Of numpy, which pyarrow imports: its threads take a tenth of the time of a short command.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Else pydantic reads the metadata of all installed packages, to find its plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    interrupts.watch()
    codes: list[int] = []
    atexit.register(lambda: _leave_at_once(codes))
    _seek_no_cycles_at_first()
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # Names are any text, and rows go to files under any locale. In a notebook the
        # streams have another type, and are UTF-8.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    # Without a locale Python reads names of files as UTF-8, and Java as ASCII.
    if locale.setlocale(locale.LC_CTYPE) == "C":
        os.environ["LC_ALL"] = "C.UTF-8"
    # Databricks takes any SystemExit for a failure, also with code 0, and a return for success.
    codes.append(execute(sys.argv[1:]))
    if codes[0]:
        sys.exit(codes[0])


def _leave_at_once(codes: list[int]) -> None:
    """End after Ctrl-C without Python's own end, in which native code that was cut off may crash.

    It is registered first, so it runs last: all else of this process has ended.
    """
    if codes == [interrupts.EXIT_CODE]:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(interrupts.EXIT_CODE)


def _seek_no_cycles_at_first() -> None:
    """Leave the cycles of the first seconds: what modules define stays.

    To seek cycles takes a tenth of the time of a short command, also at its end. A command that
    goes on, such as `serve`, seeks them as usual.
    """
    usual, until = gc.get_threshold(), time.monotonic() + _SHORT_S

    def ask(_phase: str, _info: dict[str, int]) -> None:
        if time.monotonic() > until and ask in gc.callbacks:
            gc.callbacks.remove(ask)
            gc.set_threshold(*usual)

    # No timer: `sql` starts its process faster while there is no other thread.
    gc.callbacks.append(ask)
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)


def _open_streams() -> None:
    """Give streams that were closed before the start: nothing is read from or written to them."""
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  for good
    if "stdout" in closed:
        output.note("the standard output is closed: nothing is printed there")


def _print_version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version  # noqa: PLC0415  only here

        output.lines([f"quotaflow {version('quotaflow')}"])
        raise typer.Exit


def _begin_log(form: logs.Format) -> logs.Format:
    logs.start(form)
    return form


def _quotaflow(
    context: typer.Context,
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    _log_format: Annotated[
        logs.Format,
        typer.Option(
            "--log-format",
            callback=_begin_log,
            is_eager=True,
            envvar="QUOTAFLOW_LOG_FORMAT",
            help="Lines on stderr: text, or an object of JSON each.",
        ),
    ] = "text",
    verbose: Annotated[bool, typer.Option("-v", help="Log details too.")] = False,
    quiet: Annotated[bool, typer.Option("-q", help="Log warnings and errors alone.")] = False,
) -> None:
    """Makes `quotaflow` a group of commands, with the options of all."""
    if verbose and quiet:
        raise ConfigError("-v and -q exclude each other: give one")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logs.of_command(context.invoked_subcommand, level)


if __name__ == "__main__":
    main()
