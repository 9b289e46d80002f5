"""The stop file: while it exists, nothing is written to the cluster (kill switch)."""

from pathlib import Path

from quotaflow.pipelines.config import PlanSection, WarehouseSection, expanded

NAME = "STOP"


def path(plan: PlanSection, warehouse: WarehouseSection) -> Path:
    """The file that stops every write to the cluster while it exists."""
    if plan.stop_file is not None:
        return expanded(plan.stop_file)
    return warehouse.state_folder / NAME


def reason(file: Path) -> str | None:
    """Why nothing may be written now; None if this file is not there."""
    return f"{file} is there, nothing is written: remove it to go on" if file.exists() else None
