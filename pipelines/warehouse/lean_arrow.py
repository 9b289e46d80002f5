"""Imports pyarrow for a command that only reads: without numpy, which takes longer than pyarrow."""

import sys
from types import ModuleType
from typing import cast

from quotaflow.pipelines.config import WarehouseSection


def load(conf: WarehouseSection) -> None:
    """Import pyarrow, if nothing did, without its conversions to arrays of numpy.

    Over a folder no reader needs them. Spark and the clients of object stores may.
    """
    if conf.catalog_schema or conf.is_store or {"numpy", "pyarrow"} & sys.modules.keys():
        return
    # Python's way to refuse an import.
    sys.modules["numpy"] = cast("ModuleType", None)
    try:
        import pyarrow  # noqa: F401, PLC0415  as above
    finally:
        del sys.modules["numpy"]
