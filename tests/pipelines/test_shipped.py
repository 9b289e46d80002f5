"""What workers are sent imports by itself, from the zip alone."""

import subprocess
import sys

from quotaflow.pipelines import shipped

IMPORT_ALL = """
import pkgutil, sys
sys.path = [path for path in sys.path if "quotaflow" not in path]
sys.meta_path = [each for each in sys.meta_path if "editable" not in getattr(each, "__name__", "")]
sys.path.insert(0, sys.argv[1])
import quotaflow
found = [m.name for m in pkgutil.walk_packages(quotaflow.__path__, "quotaflow.")]
for name in found:
    __import__(name)
places = {sys.modules[name].__file__ for name in found}
assert all(place.startswith(sys.argv[1]) for place in places), places
print(len(found))
"""


def test_every_module_that_runs_on_workers_imports_from_the_zip() -> None:
    package = str(shipped.package())
    command = [sys.executable, "-c", IMPORT_ALL, package]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert int(said.stdout) > 40
