"""The tables of the last demo: where quotaflow keeps them, and whether conf's tables are these."""

from datetime import UTC, datetime

from quotaflow.pipelines.config.runtime import WarehouseSection, home

FOLDER = "demo"
"""The folder of quotaflow's home with the runs of the demo; the default place of tables is a link
to those of the last run."""


def ended_at(warehouse: WarehouseSection) -> datetime | None:
    """When the demo ended that left the tables which a command uses by default; else None.

    None also if conf names the place of the tables.
    """
    if warehouse.path or warehouse.catalog_schema:
        return None
    link = warehouse.folder
    is_of_demo = link.is_symlink() and (home() / FOLDER).resolve() in link.resolve().parents
    return datetime.fromtimestamp(link.lstat().st_mtime, UTC) if is_of_demo else None
