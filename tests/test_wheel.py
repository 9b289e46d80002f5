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
    ".table",
    ".tpl",
    ".json",
    ".conf",
    ".yaml",
    ".xml",
    ".sha256",
    ".java",
    ".md",
    ".toml",
    ".typed",
    ".properties",
    ".service",
    ".timer",
    ".j2",
    ".css",
    ".js",
}
NAMED = {"crontab", "kafka_properties.txt"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ZipFile]:
    """The wheel of a checkout and the wheel of its sdist, by where each was built from.

    The checkout is a copy: a build folder left in the tree would put old files into the wheel.
    """
    tree = tmp_path_factory.mktemp("tree")
    left_out = shutil.ignore_patterns("__pycache__", "*.class", "*.egg-info")
    for folder in (*FOLDERS, "src"):
        shutil.copytree(ROOT / folder, tree / folder, symlinks=True, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    _build(tree, "--wheel", "--outdir", "checkout")
    _build(tree, "--outdir", "sdist")  # an sdist, and the wheel of that sdist
    built = {name: (tree / name).glob("*.whl") for name in ("checkout", "sdist")}
    return {name: ZipFile(wheel) for name, wheels in built.items() for wheel in wheels}


def _build(tree: Path, *words: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", *words]
    built = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


@pytest.fixture(scope="module")
def wheel(built: dict[str, ZipFile]) -> ZipFile:
    """What a checkout is built into."""
    return built["checkout"]


def info(wheel: ZipFile) -> str:
    """The folder of the wheel that says what it is; its name holds the version."""
    return next(name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))[:-6]


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    return message_from_string(wheel.read(f"{info(wheel)}/METADATA").decode())


def requirements(metadata: Message) -> tuple[set[str], set[str]]:
    """Names of what is always needed, and of what an extra adds."""
    texts = metadata.get_all("Requires-Dist") or []

    def names(is_extra: bool) -> set[str]:
        chosen = [text for text in texts if ("extra ==" in text) is is_extra]
        return {
            text.split(";")[0].split("<")[0].split(">")[0].split("=")[0].strip() for text in chosen
        }

    return names(False), names(True)


def test_it_holds_every_file_of_the_tree_and_nothing_else(wheel: ZipFile) -> None:
    in_tree = {
        f"quotaflow/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if (path.suffix in PACKED or path.name in NAMED) and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if not name.startswith(f"{info(wheel)}/")}
    assert sorted(in_tree - packed) == [], "in the tree, and not in the wheel"
    assert sorted(packed - in_tree) == [], "in the wheel, and not in the tree"


def test_an_sdist_is_built_into_the_same_files(built: dict[str, ZipFile]) -> None:
    names = {name: sorted(wheel.namelist()) for name, wheel in built.items()}
    assert names["sdist"] == names["checkout"]


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
