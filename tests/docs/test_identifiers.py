"""Each identifier in backticks is there: in pages, in heads of SQL files and in docstrings."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("pipelines", "udfs", "schemas", "demo", "bench", ".ci")
"""Folders whose Python defines names; of tests only what they define counts."""
TEXTS = ("conf/**/*", "broker/**/*", "demo/**/*", ".ci/**/*", "pipelines/**/*", "*.*", "Makefile")
"""Files of another kind, any word of which is a name: conf, Java, messages of Kafka, templates."""
DEFINED = re.compile(r"^ *(?:def|class) (\w+)|^(\w+)(?:: .+)? = ", re.M)
"""What a module of tests defines."""
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_][\w-]*)*(?:\(\))?")
WORD = re.compile(r"[\w.-]+")
PARTS_OF_NAMES = {"explode_", "filter_", "with_", "_lag_share", "_time_share"}
"""Beginnings and ends of names."""
OF_KAFKA = {
    *("ClientMetricsManager.computeSubscriptionId", "configNames()", "KAFKA_OPTS"),
    *("producer.id.quota.window.num", "quota.window.num", "ssl.principal.mapping.rules"),
    "max.incremental.fetch.session.cache.slots",
}
OF_OTHERS = {
    *("AWS_DEFAULT_REGION", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "role_session_name", "invalid_token"),
    *("oauthbearer.secured", "kubernetes.pod.name", "kubernetes.pod_name"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "identityPoolId", "logicalCluster", "Secret"),
    *("CheckpointFileManager", "spark.executor.memoryOverhead", "stopTimeout", "_last_checkpoint"),
    *("deltatocumulative", "out_of_order_time_window", "otlp.promote_resource_attributes"),
    *("OFF", "ps", "CLASSİC", "DATABRICKS_HOST", "DATABRICKS_TOKEN", "SPARK_REMOTE"),
}
"""Words of clouds, shippers, Spark and Delta, loggers, Prometheus, and an operating system."""
EXAMPLES = {
    *("dev_you_quotaflow", "quotaflow_dev_you", "quotaflow_operator_dev_you"),
    *("my.topic", "my_topic"),
}
"""Names that a reader could have."""
OUTSIDE = PARTS_OF_NAMES | OF_KAFKA | OF_OTHERS | EXAMPLES


@cache
def modules(folder: str) -> list[tuple[Path, ast.Module]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


@cache
def docstrings(tree: ast.Module) -> dict[int, str]:
    """Texts that stand alone in a body, also below a constant or a field, by their node."""
    return {
        id(each.value): each.value.value
        for node in nodes(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for each in node.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if isinstance(each.value.value, str)
    }


def named(tree: ast.Module) -> Iterator[str]:
    """What Python names: definitions, arguments, variables, attributes, and what it imports."""
    for node in nodes(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.arg() | ast.keyword():
                yield node.arg or ""
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.alias():
                yield from (node.name, node.name.rpartition(".")[2])


def strings(tree: ast.Module) -> Iterator[str]:
    """Words of texts that are no docstring: SQL, codes, keys, options."""
    apart = docstrings(tree)
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            # What a text has in backticks proves nothing.
            yield from WORD.findall(re.sub(r"`[^`]*`", " ", node.value))


def comments_of(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if line.lstrip().startswith("--"))


def statements_of(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))


SQL = {
    path: path.read_text(encoding="utf-8")
    for folder in ("schemas", "pipelines", "udfs")
    for path in sorted((ROOT / folder).rglob("*.sql"))
}


def declared_columns(sql: str) -> Iterator[str]:
    """Columns that a head declares: `--   name: meaning` or `--   name TYPE: meaning`."""
    for names in re.findall(r"^--   (?:from \w+: )?([\w, ]+?)(?: [A-Z].*)?:? ", sql, re.M):
        yield from WORD.findall(names)


def words_of_files() -> Iterator[str]:
    for pattern in TEXTS:
        for path in ROOT.glob(pattern):
            if path.is_file() and path.suffix not in {".md", ".py", ".sql", ".pyc", ".lock"}:
                content = path.read_text(encoding="utf-8", errors="replace")
                yield from WORD.findall(content)
                # An attribute of JMX is a getter of Java.
                yield from re.findall(r"\bget(\w+)\(", content)


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Everything that has a name."""
    every = {path.name for folder in (*CODE, "tests") for path in (ROOT / folder).rglob("*.py")}
    every |= {path.stem for path in SQL} | {name.removesuffix(".py") for name in every}
    every |= {path.name for path in ROOT.iterdir()}
    for _, tree in chain.from_iterable(map(modules, CODE)):
        every |= {*named(tree), *strings(tree)}
    for path in (ROOT / "tests").rglob("*.py"):
        every.update(*DEFINED.findall(path.read_text(encoding="utf-8")))
    for sql in SQL.values():
        every |= {*WORD.findall(statements_of(sql)), *declared_columns(sql)}
    return every | set(words_of_files()) | OUTSIDE


PAGES = [*(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"))]
PAGES += sorted((ROOT / "docs").glob("*.md"))


@cache
def quoted_identifiers() -> set[tuple[str, str]]:
    """The identifiers of each text that people read, with where it is."""
    texts = [(page.name, page.read_text(encoding="utf-8")) for page in PAGES]
    texts += [(path.name, comments_of(sql)) for path, sql in SQL.items()]
    documented = chain.from_iterable(map(modules, ("pipelines", "udfs", "schemas")))
    texts += [(path.name, "\n".join(docstrings(tree).values())) for path, tree in documented]
    return {(where, identifier) for where, text in texts for identifier in identifiers(text)}


def identifiers(text: str) -> set[str]:
    """Those of a text, without what its own blocks name, as a query names its columns."""
    blocks = re.findall(r"(?ms)^ *```.*?^ *```$", text)
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^ *```.*?^ *```$", "", text))
    own = set(WORD.findall("\n".join(blocks)))
    return {each for each in quoted if IDENTIFIER.fullmatch(each)} - own


def is_named(identifier: str, names: set[str]) -> bool:
    """Whether it has a name, whole or in its parts, as a table and its column."""
    name = identifier.removesuffix("()")
    return bool({identifier, name} & names) or all(part in names for part in name.split("."))


def test_each_identifier_in_backticks_is_there(names: set[str]) -> None:
    missing = [pair for pair in quoted_identifiers() if not is_named(pair[1], names)]
    assert sorted(missing) == []


def test_what_is_gone_is_noticed(names: set[str]) -> None:
    page = "Call `RuleInputs.of()`, then `is_relevant` of `pipelines.nowhere_now`; not `traffic`."
    missing = {each for each in identifiers(page) if not is_named(each, names)}
    assert missing == {"RuleInputs.of()", "is_relevant", "pipelines.nowhere_now"}


def test_each_outside_term_is_named_by_some_text() -> None:
    assert {identifier for _, identifier in quoted_identifiers()} >= OUTSIDE
