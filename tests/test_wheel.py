"""The wheel holds the packages' files, all of them and nothing else."""

import shutil
import subprocess
import sys
from configparser import ConfigParser
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("broker", "conf", "demo", "pipelines", "schemas", "udfs")
# Needed at run time or by an operator; what a folder holds beside these must not be packed.
PACKED = {
    ".py",
    ".sql",
    ".csv",
    ".yaml",
    ".xml",
    ".sha256",
    ".java",
    ".md",
    ".toml",
    ".typed",
    ".properties",
    ".j2",
    ".css",
    ".js",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Built from a copy: a build folder left in the tree would put old files into the wheel."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__", "*.class")
        shutil.copytree(ROOT / folder, tree / folder, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    built = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = (tree / "dist").iterdir()
    return ZipFile(file)


def info(wheel: ZipFile) -> str:
    """The folder of the wheel that says what it is; its name holds the version."""
    return next(name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))[:-6]


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    return message_from_string(wheel.read(f"{info(wheel)}/METADATA").decode())


def requirements(metadata: Message) -> tuple[set[str], set[str]]:
    """Names of what is always needed, and of what an extra adds."""
    texts = metadata.get_all("Requires-Dist") or []

    def names(wanted: bool) -> set[str]:
        chosen = [text for text in texts if ("extra ==" in text) is wanted]
        return {
            text.split(";")[0].split("<")[0].split(">")[0].split("=")[0].strip() for text in chosen
        }

    return names(False), names(True)


def test_it_holds_every_file_of_the_tree_and_nothing_else(wheel: ZipFile) -> None:
    in_tree = {
        f"quotaflow/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in PACKED and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if not name.startswith(f"{info(wheel)}/")}
    assert sorted(in_tree - packed) == [], "in the tree, and not in the wheel"
    assert sorted(packed - in_tree) == [], "in the wheel, and not in the tree"


def test_the_command_is_there(wheel: ZipFile) -> None:
    points = ConfigParser()
    points.read_string(wheel.read(f"{info(wheel)}/entry_points.txt").decode())
    assert dict(points["console_scripts"]) == {"quotaflow": "quotaflow.pipelines.__main__:main"}
    for group in points.sections():
        for target in points[group].values():
            module = target.split(":")[0].replace(".", "/")
            assert f"{module}.py" in wheel.namelist()


def test_spark_is_not_a_base_requirement(metadata: Message) -> None:
    """On Databricks the runtime brings pyspark and Delta; installing others breaks it."""
    base, extra = requirements(metadata)
    assert {"pyspark", "delta-spark", "confluent-kafka"} <= extra
    assert not {"pyspark", "delta-spark", "confluent-kafka", "pytest"} & base
    assert {"deltalake", "kafka-python", "mmh3", "protobuf", "pyarrow", "pydantic"} <= base


def test_it_says_what_it_is(metadata: Message, wheel: ZipFile) -> None:
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert f"{info(wheel)}/licenses/LICENSE" in wheel.namelist()
