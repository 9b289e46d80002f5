"""What import-linter and ruff cannot say: what has its one place, no folder unchecked, and no
failure of another program without its cause.
"""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import duckdb

from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from .cases import cases

ROOT = Path(__file__).parents[1]
FOLDERS = ("broker", "conf", "demo", "pipelines", "schemas", "udfs")
# Spark Connect has none of these; only a local session may need them.
CLASSIC = {"_jvm", "_jsc", "sparkContext", "rdd"}
CLASSIC_ALLOWED = ("pipelines/spark/session.py", "demo/")
# A session may refuse these or lack them, so one module each has the way to go on without.
ONE_PLACE = {
    "persist": "pipelines/spark/caching.py",
    "cache": "pipelines/spark/caching.py",
    "createDataFrame": "pipelines/spark/frames.py",
    "py4j": "pipelines/spark/spark_errors.py",
    # A connection of DuckDB from elsewhere would take times in the zone of the machine.
    **dict.fromkeys(
        (f"duckdb.{name}" for name in dir(duckdb) if name.islower()), "udfs/engine/connections.py"
    ),
}
LOCAL_TIMES = {f"time.{name}" for name in ("asctime", "ctime", "localtime", "mktime", "strftime")}
"""Functions that go by the zone of the machine; ruff's DTZ refuses those of datetime."""

WHOLE_CONF = (
    *(f"pipelines/{floor}/" for floor in ("commands", "config", "connect", "jobs")),
    "pipelines/feedback/runs/context.py",
    # Its tools ask areas, tables and plans.
    "pipelines/serve/mcp_tools.py",
    # The reference page of all keys.
    "pipelines/reference/conf_keys.py",
    # Which part of conf a name in the text of a result is.
    *(f"pipelines/results/{name}.py" for name in ("declared", "inputs")),
)
"""Where the whole conf is read; what these call takes sections of it."""
NOT_YET = tuple(
    f"pipelines/{floor}/"
    for floor in (
        *("areas", "doctor", "facts", "maintenance", "monitoring", "quality", "serve"),
        *("snapshots", "warehouse"),
    )
)
"""Floors that still take it. This list may only shrink."""

OF_TESTS = ("tests", "bench", ".ci")

SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
)


def misplaced(source: str, path: str) -> list[str]:
    """Names that a module at this path uses and must not."""
    tree = ast.parse(source)
    used = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used |= {node.attr, ast.unparse(node)}
        elif isinstance(node, ast.Import):
            used |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add((node.module or "").partition(".")[0])
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
    classic = set() if path.startswith(CLASSIC_ALLOWED) else CLASSIC
    elsewhere = {name for name, place in ONE_PLACE.items() if path != place}
    return sorted(used & (classic | elsewhere | LOCAL_TIMES))


def test_no_query_of_a_module_names_a_part_as_a_table() -> None:
    """Over a catalog such a query is refused: Spark could take one for the other."""
    named = re.compile(r"(?:WITH|\),)\s+(\w+) AS \(")
    parts = {
        (path, part)
        for path in SOURCES
        for part in named.findall((ROOT / path).read_text(encoding="utf-8"))
    }
    assert {part for _, part in parts} >= {"clients"}
    assert {each for each in parts if each[1] in {*TABLES, *views.load()}} == set()


def test_what_has_one_place_is_used_there_alone() -> None:
    uses = {path: misplaced((ROOT / path).read_text(encoding="utf-8"), path) for path in SOURCES}
    assert {path: texts for path, texts in uses.items() if texts} == {}


def takes_conf(source: str) -> bool:
    """Whether a module imports the class of the whole conf, for types alone too."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    named = {(node.module or "", alias.name) for node in imports for alias in node.names}
    return bool(
        named & {(f"quotaflow.pipelines.{part}", "Conf") for part in ("config", "config.conf")}
    )


def test_the_whole_conf_is_handed_to_no_lower_floor() -> None:
    taking = [
        path
        for path in SOURCES
        if path.startswith("pipelines/") and takes_conf((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert [path for path in taking if not path.startswith(WHOLE_CONF + NOT_YET)] == []
    assert [floor for floor in NOT_YET if not any(path.startswith(floor) for path in taking)] == []
    assert takes_conf("def f():\n    from quotaflow.pipelines.config import Conf, home")
    assert not takes_conf("from quotaflow.pipelines.config import PlanSection")


SAME_NAMES = {
    *("Computed", "Finding", "Layout", "Limits", "NewRows", "Origin", "Outcome", "Place", "Reader"),
    *("Release", "Request", "Source", "Subscription"),
}
"""Public classes of two modules that still have one name. This list may only shrink."""


def test_a_public_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == SAME_NAMES


def loses_a_cause(source: str) -> list[int]:
    """Lines of calls that read standard error, and of a failure raise the exit code alone."""
    both = {"capture_output", "check"}
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if both <= {each.arg for each in call.keywords if ast.unparse(each.value) == "True"}
    ]


def test_no_failure_of_another_program_loses_its_cause() -> None:
    files = [path for folder in (*FOLDERS, *OF_TESTS) for path in (ROOT / folder).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    calls = {path: loses_a_cause(text) for path, text in texts.items() if "capture_output" in text}
    assert len(calls) > 10
    assert {path: lines for path, lines in calls.items() if lines} == {}
    assert loses_a_cause("run(a, check=True, capture_output=True)") == [1]
    assert loses_a_cause("run(a, check=False, capture_output=True)") == []


def test_every_tool_is_given_every_folder() -> None:
    """A tool passes where it finds no file, so a folder that it is not given is never checked."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    links = sorted(path for path in (ROOT / "src/quotaflow").iterdir() if path.is_symlink())
    assert tools["pyright"]["include"] == [link.relative_to(ROOT).as_posix() for link in links]
    assert {link.name for link in links} == set(FOLDERS)
    assert set(tools["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == set(FOLDERS)
    assert {path.partition("/")[0] for path in SOURCES} == set(FOLDERS)


@cases(
    ("path", "source", "expected"),
    (
        "Spark Connect has no such attribute",
        "pipelines/x.py",
        "spark._jvm\nspark._jsc\nspark.sparkContext.stop()\nframe.rdd",
        ["_jsc", "_jvm", "rdd", "sparkContext"],
    ),
    ("a local session has one", "pipelines/spark/session.py", "spark._jvm", []),
    ("the demo's session is local", "demo/x.py", "spark._jvm", []),
    ("an import", "pipelines/x.py", "import py4j.protocol", ["py4j"]),
    (
        "an import inside a function",
        "pipelines/x.py",
        "def f():\n    from py4j.protocol import Py4JError\n    spark.createDataFrame([])",
        ["createDataFrame", "py4j"],
    ),
    ("caching", "pipelines/x.py", "frame.persist()\nframe.cache()", ["cache", "persist"]),
    ("caching in its place", "pipelines/spark/caching.py", "frame.persist()", []),
    ("a connection", "pipelines/a.py", "duckdb.connect().cursor()", ["duckdb.connect"]),
    ("a connection by its name", "demo/a.py", "from duckdb import sql", ["duckdb.sql"]),
    ("connections in their place", "udfs/engine/connections.py", "duckdb.connect()", []),
    ("a time of the machine's zone", "demo/a.py", "time.strftime('%H')", ["time.strftime"]),
)
def test_a_planted_problem_is_reported(path: str, source: str, expected: list[str]) -> None:
    assert misplaced(source, path) == expected
