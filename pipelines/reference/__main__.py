"""Writes the reference pages: python -m quotaflow.pipelines.reference docs/reference."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from quotaflow.pipelines.monitoring import runbook
from quotaflow.pipelines.reference import conf_keys, dictionary, reasons

PAGES: Mapping[str, Callable[[], str]] = {
    "conf.md": conf_keys.text,
    "dictionary.md": dictionary.text,
    "metrics.md": runbook.metrics_page,
    "reasons.md": reasons.text,
    "runbook.md": runbook.page,
}
"""Each page by its file name, and what makes its text."""


def write(folder: Path) -> None:
    """Write each page into a folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        (folder / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
