"""Imports go one way: schemas <- udfs <- pipelines <- demo, always under the name quotaflow."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("schemas", "udfs", "pipelines", "demo")
FOLDERS = (*LAYERS, "broker", "conf")
HEAVY = {"pyspark", "pandas", "pyarrow"}
# Spark Connect has none of these; only a local session may need them.
CLASSIC = {"_jvm", "_jsc", "sparkContext", "rdd"}
CLASSIC_ALLOWED = ("pipelines/spark/session.py", "demo/", "tests/", "bench/")
# What may be refused, or is not there, has one place each that goes on without.
ONE_PLACE = {
    "persist": "pipelines/spark/caching.py",
    "cache": "pipelines/spark/caching.py",
    "createDataFrame": "pipelines/spark/frames.py",
    "py4j": "pipelines/spark/spark_errors.py",
}

SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (*FOLDERS, "tests", "bench")
    for path in (ROOT / folder).rglob("*.py")
)


def problems(source: str, path: str) -> list[str]:
    """What a module at this path must not do, one text each."""
    tree = ast.parse(source)
    found = [p for name in imported(tree) if (p := import_problem(name, path))]
    if not path.startswith(CLASSIC_ALLOWED):
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        found += [f"uses {name}" for name in sorted(attributes & CLASSIC)]
        used = attributes | {name.partition(".")[0] for name in imported(tree)}
        found += [
            f"uses {name}" for name in sorted(used & ONE_PLACE.keys()) if path != ONE_PLACE[name]
        ]
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names of all imports, those inside functions and type checks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_problem(name: str, path: str) -> str | None:
    top, _, rest = name.partition(".")
    folder, layer = path.partition("/")[0], rest.partition(".")[0]
    if not top and folder in FOLDERS:
        return f"relative import {name}"
    if top in FOLDERS:
        return f"bare import {name}"
    if path.startswith("udfs/rules/") and top in HEAVY:
        return f"a rule imports {name}"
    if top != "quotaflow" or folder not in FOLDERS:
        return None
    below = LAYERS[: LAYERS.index(folder) + 1] if folder in LAYERS else ()
    return None if layer in below else f"{folder} imports {layer}"


@pytest.mark.parametrize("path", SOURCES)
def test_imports_go_one_way(path: str) -> None:
    assert problems((ROOT / path).read_text(encoding="utf-8"), path) == []


def test_pyright_checks_every_linked_folder() -> None:
    """pyright passes where it finds no file, so a folder that it is not given is never checked."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    links = sorted(path for path in (ROOT / "src/quotaflow").iterdir() if path.is_symlink())
    assert tools["pyright"]["include"] == [link.relative_to(ROOT).as_posix() for link in links]
    assert {link.name for link in links} == set(FOLDERS)


@pytest.mark.parametrize("folder", [*LAYERS, "udfs/rules", "tests"])
def test_every_folder_is_looked_at(folder: str) -> None:
    assert any(path.startswith(f"{folder}/") for path in SOURCES)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        pytest.param(
            "schemas/x.py",
            "from quotaflow.udfs import otlp",
            ["schemas imports udfs"],
            id="a shape knows no logic",
        ),
        pytest.param(
            "udfs/x.py",
            "def f():\n    from quotaflow.pipelines import config",
            ["udfs imports pipelines"],
            id="not inside a function either",
        ),
        pytest.param(
            "pipelines/facts/x.py",
            "import quotaflow.demo.cluster",
            ["pipelines imports demo"],
            id="the demo is on top",
        ),
        pytest.param(
            "pipelines/x.py",
            "from quotaflow import demo, schemas",
            ["pipelines imports demo"],
            id="nor by its short form",
        ),
        pytest.param(
            "udfs/rules/x.py",
            "if TYPE_CHECKING:\n    import pandas as pd",
            ["a rule imports pandas"],
            id="a rule needs no pandas, not even for types",
        ),
        pytest.param(
            "tests/x.py", "import pipelines.run", ["bare import pipelines.run"], id="a bare name"
        ),
        pytest.param("udfs/x.py", "from . import otlp", ["relative import ..otlp"], id="a dot"),
        pytest.param(
            "pipelines/x.py",
            "spark._jvm\nspark.sparkContext.stop()\nframe.rdd",
            ["uses _jvm", "uses rdd", "uses sparkContext"],
            id="what Spark Connect lacks",
        ),
        pytest.param("pipelines/spark/session.py", "spark._jvm", [], id="but a session may"),
        pytest.param(
            "pipelines/x.py",
            "def f():\n    from py4j.protocol import Py4JError\n    spark.createDataFrame([])",
            ["uses createDataFrame", "uses py4j"],
            id="what a client of Spark Connect has not, or takes otherwise",
        ),
        pytest.param(
            "pipelines/x.py", "frame.persist()", ["uses persist"], id="what serverless may refuse"
        ),
        pytest.param("pipelines/spark/caching.py", "frame.persist()", [], id="in its one place"),
        pytest.param(
            "broker/x.py",
            "from quotaflow.schemas import tables",
            ["broker imports schemas"],
            id="files for operators import nothing",
        ),
        pytest.param(
            "demo/x.py", "from quotaflow.pipelines import run\nimport json", [], id="downwards"
        ),
    ],
)
def test_a_planted_problem_is_found(path: str, source: str, expected: list[str]) -> None:
    assert problems(source, path) == expected
