"""Writes the dashboard's file to stdout: python -m quotaflow.pipelines.dashboard > FILE."""

import json
import sys

from quotaflow.pipelines.dashboard.lakeview import dashboard
from quotaflow.pipelines.dashboard.pages import PAGES
from quotaflow.pipelines.dashboard.questions import QUESTIONS


def text() -> str:
    """The file, with sorted keys, so that it changes only with the dashboard."""
    made = dashboard(tuple(QUESTIONS.values()), PAGES)
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
