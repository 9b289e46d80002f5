"""The packages that run on workers, as a zip that Spark sends: workers need no quotaflow."""

import atexit
import shutil
import tempfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

_ON_WORKERS = ("schemas", "udfs")


def package() -> Path:
    """A zip of the packages whose functions run on workers; removed when this process ends.

    Workers must have the compiled packages that these import (pyarrow, duckdb, protobuf ...).
    """
    folder = tempfile.mkdtemp(prefix="quotaflow-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "quotaflow.zip")
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.mkdir("quotaflow")
        for name in _ON_WORKERS:
            _add(archive, files(f"quotaflow.{name}"), f"quotaflow/{name}")
    return path


def _add(archive: ZipFile, folder: Traversable, name: str) -> None:
    # Python finds a package without __init__ in a zip only where the folder has an entry.
    archive.mkdir(name)
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_file():
            archive.writestr(f"{name}/{each.name}", each.read_bytes())
        elif each.name != "__pycache__":
            _add(archive, each, f"{name}/{each.name}")
