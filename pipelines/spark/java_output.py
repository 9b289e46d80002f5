"""Why a Java program failed, by what it printed: one line, without stacks and secrets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_THROWABLE = re.compile(
    r"(?:[a-z_]\w*\.)+(?P<name>[A-Z][\w$]*(?:Exception|Error|Throwable))(?::\s+(?P<message>\S.*))?"
)
_CAUSE = "Caused by: "
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ |Suppressed: |Caused by: )")
_ERROR = re.compile(r"\b(ERROR|FATAL)\b")
_NO_ERROR = re.compile(r"\b(TRACE|DEBUG|INFO|WARN)\b|^Picked up |\bwarning: ")
"""Lines of a log, and what a JVM prints of its options, which may hold the password of a proxy."""
_SECRETS = (
    re.compile(
        r"(?i)([\w.-]*(?:password|passwd|secret|token|credential|user\.info|jaas|\.key)[\w.-]*"
        r"""["']?\s*[=:]\s*)("[^"]*"?|'[^']*'?|\[[^\]]*\]?|[^\s,;]+)"""
    ),
    re.compile(r"(?i)(\bbearer\s+)(\S+)"),
    re.compile(r"(://)([^/\s@]+)(?=@)"),
)
_PLAIN_LINES, _LAST_LINES = 2, 3
_MAX_LENGTH = 500


@dataclass(slots=True)
class _Stack:
    """A throwable and its causes, the outermost first: name and message of each."""

    is_error: bool
    throwables: list[tuple[str, str | None]] = field(default_factory=list)


def first_cause(output: str) -> str:
    """The cause behind all others: `TimeoutException: Timed out waiting for a node assignment`.

    It is the innermost throwable with a message, of the first stack with causes; a stack that was
    logged as a warning counts where there is no other one. Without a throwable it is the first
    lines that are no part of a log, or were logged as an error. Values that look like secrets are
    left out.
    """
    lines = [line for line in output.splitlines() if line.strip()]
    return _shown(_thrown(list(_stacks(lines))) or _printed(lines))


def _stacks(lines: Sequence[str]) -> Iterator[_Stack]:
    stack, before = None, ""
    for line in lines:
        if _FRAME.match(line):
            continue
        throwable = _THROWABLE.search(line)
        if line.startswith(_CAUSE) and stack and throwable:
            stack.throwables.append(_named(throwable))
        elif throwable:
            if stack:
                yield stack
            is_error = not (_NO_ERROR.search(line) or _NO_ERROR.search(before))
            stack = _Stack(is_error, [_named(throwable)])
        before = line
    if stack:
        yield stack


def _named(throwable: re.Match[str]) -> tuple[str, str | None]:
    """Name and message; of one whose message is that of another throwable, the other one."""
    name, message = throwable["name"], throwable["message"]
    if message and throwable.string[: throwable.start()].endswith("("):
        message = message.removesuffix(")")
    if message and (inner := _THROWABLE.match(message)):
        return _named(inner)
    return name, message


def _thrown(stacks: Sequence[_Stack]) -> str | None:
    ranked = sorted(stacks, key=lambda stack: (not stack.is_error, len(stack.throwables) == 1))
    for stack in ranked:
        for name, message in reversed(stack.throwables):
            if message:
                return f"{name}: {message}"
    return None


def _printed(lines: Sequence[str]) -> str:
    own = [line for line in lines if not _FRAME.match(line)]
    errors = [line for line in own if _ERROR.search(line)]
    plain = [line for line in own if not _NO_ERROR.search(line)]
    chosen = (errors or plain)[:_PLAIN_LINES] or own[-_LAST_LINES:]
    return " | ".join(chosen) or "it printed nothing"


def _shown(text: str) -> str:
    for secret in _SECRETS:
        text = secret.sub(r"\1(not shown)", text)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
