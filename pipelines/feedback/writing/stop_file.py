"""The stop file: while it exists, nothing is written to the cluster (kill switch)."""

from pathlib import Path

from quotaflow.pipelines.config import Conf, expanded

NAME = "STOP"


def path(conf: Conf) -> Path:
    """The file that stops every write to the cluster while it exists."""
    if conf.plan.stop_file is not None:
        return expanded(conf.plan.stop_file)
    return conf.warehouse.state_folder / NAME


def reason(conf: Conf) -> str | None:
    """Why nothing may be written now; None if there is no stop file."""
    file = path(conf)
    return f"{file} is there, nothing is written: remove it to go on" if file.exists() else None
