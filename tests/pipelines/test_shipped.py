"""What workers are sent imports by itself, from the zip alone."""

import subprocess
import sys
from pathlib import Path

from quotaflow.pipelines import shipped

# An editable install adds the checkout's own folder to sys.path; the zip has to do without it.
IMPORT_ALL = """
import pkgutil, sys
archive, checkout = sys.argv[1:]
sys.path = [archive, *(path for path in sys.path if path != checkout)]
import quotaflow
found = [m.name for m in pkgutil.walk_packages(quotaflow.__path__, "quotaflow.")]
for name in found:
    __import__(name)
places = {sys.modules[name].__file__ for name in found}
assert all(place.startswith(archive) for place in places), places
print(len(found))
"""
CHECKOUT = Path(shipped.__file__).parents[2]


def test_every_module_that_runs_on_workers_imports_from_the_zip() -> None:
    command = [sys.executable, "-c", IMPORT_ALL, str(shipped.package()), str(CHECKOUT)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert int(said.stdout) > 40
