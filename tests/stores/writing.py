"""One writer, as a process: `python -m tests.stores.writing WORK NUMBER`, with conf on stdin."""

import sys

import pyarrow as pa

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import LockedError
from quotaflow.pipelines.warehouse import row_writer, store_owner
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS as TABLE

from ..delta_tables import NOON
from ..schemas.views.view_tables import no_session

COMMITS = 12
OWNER = "owner"


def append(conf: WarehouseSection, writer: str) -> str:
    """Append rows, each in a commit. The lock file is this process's own: only the store orders."""
    warehouse = Warehouse(conf)
    for number in range(COMMITS):
        row = {"event_time": NOON, "job": writer, "batch_id": number, "row_count": 1}
        rows = pa.Table.from_pylist([row], schema=TABLE.arrow)
        row_writer.append(no_session, warehouse, TABLE, rows)
    return writer


def claim(conf: WarehouseSection, _: str) -> str:
    """What came of a first write: the claim of the tables, or who has them."""
    try:
        store_owner.check(Place.from_conf(conf), conf.checkpoint_folder)
    except LockedError as error:
        return str(error)
    return OWNER


if __name__ == "__main__":
    work, writer = sys.argv[1:]
    section = WarehouseSection.model_validate_json(sys.stdin.read())
    sys.stdout.write({"append": append, "claim": claim}[work](section, writer))
