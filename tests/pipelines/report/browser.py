"""Headless Chromium, controlled over a pipe: loads a page and reads its state."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from ... import chromium

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
_END_S = 20
_PROBLEMS = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}


class Address(Protocol):
    """What has an address, such as the path of a file."""

    def as_uri(self) -> str:
        """The address."""
        ...


@dataclass
class Browser:
    """One page of a running browser. `problems` are errors of its console and network."""

    to: Any
    from_browser: Any
    numbers: Iterator[int] = field(default_factory=count)
    session: str | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    is_loaded: bool = False

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while (answer := self.next_message()).get("id") != number:
            pass
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    def next_message(self) -> dict[str, Any]:
        """The next message of the browser: an answer, or what happened."""
        text = bytearray()
        while (byte := self.from_browser.read(1)) != b"\0":
            assert byte, "the browser ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        method = message.get("method")
        if method in _PROBLEMS:
            self.problems.append(message["params"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif method == "Page.loadEventFired":
            self.is_loaded = True
        return message

    def open(
        self, page: Address, width_px: int, *, is_dark: bool = False, media: str = "screen"
    ) -> None:
        """Show a page on a screen or on paper (`print`), and wait until it is loaded."""
        size = {"width": width_px, "height": 900, "deviceScaleFactor": 1}
        self.ask("Emulation.setDeviceMetricsOverride", mobile=width_px < 600, **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme, still], media=media)
        self.problems.clear()
        self.requests.clear()
        self.is_loaded = False
        self.ask("Page.navigate", url=page.as_uri())
        while not self.is_loaded:
            self.next_message()

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def picture(self, file: Path, most_height_px: int = 16_000, top_px: float = 0) -> None:
        """The page as PNG, from `top_px` on."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        height = min(size["height"] - top_px, most_height_px)
        clip = {"x": 0, "y": top_px, "width": size["width"], "height": height, "scale": 1}
        result = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(result["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that keeps what it writes in a folder; it ends with the block.

    Raises RuntimeError where none is installed: reports are looked at before they are shipped.
    """
    command = chromium.command()
    if command is None:
        raise RuntimeError(chromium.missing())
    reads, to = os.pipe()
    from_browser, writes = os.pipe()
    flags = " ".join(_FLAGS)
    run = f'exec "$0" {flags} --user-data-dir="$1" about:blank 3<&{reads} 4>&{writes}'
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", run, command, str(folder / "profile")],
            pass_fds=(reads, writes),
            stdout=log,
            stderr=log,
        )
    os.close(reads)
    os.close(writes)
    try:
        with os.fdopen(to, "wb") as to_file, os.fdopen(from_browser, "rb") as from_file:
            page = Browser(to_file, from_file)
            target = page.ask("Target.createTarget", url="about:blank")["targetId"]
            session = page.ask("Target.attachToTarget", targetId=target, flatten=True)
            page.session = session["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.ask(f"{domain}.enable")
            yield page
            page.session = None
            page.ask("Browser.close")
            process.wait(_END_S)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a module. Without one these are skipped."""
    if chromium.command() is None:
        pytest.skip(chromium.missing())
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
