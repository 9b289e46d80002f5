"""What workers are sent imports by itself, from the zip alone."""

from quotaflow.pipelines.spark import worker_archive

from ...own_process import printed_by

# The zip has to do without checkouts that an editable install or PYTHONPATH adds to sys.path.
IMPORT_ALL = """
import os, pkgutil, sys
archive = sys.argv[1]
checkouts = {path for path in sys.path if os.path.islink(os.path.join(path, "quotaflow", "udfs"))}
assert checkouts, sys.path
sys.path = [archive, *(path for path in sys.path if path not in checkouts)]
import quotaflow
found = [m.name for m in pkgutil.walk_packages(quotaflow.__path__, "quotaflow.")]
for name in found:
    __import__(name)
places = {sys.modules[name].__file__ for name in found}
assert all(place.startswith(archive) for place in places), places
print(len(found))
"""


def test_every_module_that_runs_on_workers_imports_from_the_zip() -> None:
    assert int(printed_by(IMPORT_ALL, str(worker_archive.package()))) > 40
