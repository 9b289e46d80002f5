"""`quotaflow run` as its user starts it, on tables that another test's ingest filled."""

import shutil
from pathlib import Path

import yaml

from quotaflow.pipelines.spark import session

from ...own_process import quotaflow


def conf_file(folder: Path, **sections: object) -> Path:
    """A conf whose warehouse is `folder`/warehouse; Delta tables are read file by file."""
    content: dict[str, object] = {
        "warehouse": {"path": str(folder / "warehouse")},
        "results": {"max_bytes_per_trigger": 1},
        "spark": {"conf": dict(session.SHORT_LIVED)},
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "conf.yaml"
    file.write_text(yaml.safe_dump(content | sections))
    return file


def command(conf: Path, *jobs: str) -> list[str]:
    """The command line that runs these jobs once."""
    program = quotaflow()
    return [*program, "run", *jobs, "--once", "--conf", str(conf)]


def copied(filled: Path, folder: Path) -> Path:
    """A copy of a warehouse as `folder`/warehouse, without its checkpoints."""
    ignored = shutil.ignore_patterns("_checkpoints", ".lock")
    shutil.copytree(filled, folder / "warehouse", ignore=ignored)
    return folder / "warehouse"
