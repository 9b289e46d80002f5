"""A stranger finds code by name: a table or view leads to its file, and pages name real paths."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from .pages import PAGES, ROOT, functions_of, text_of

FOLDERS = (
    *("bench", "broker", "conf", "demo", "docs", "pipelines", "schemas", "src", "tests", "udfs"),
    *(".ci",),
)
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
) + sorted(path.name for path in ROOT.iterdir() if path.is_file())

FILLS = ("facts", "results", "snapshots", "feedback", "streaming", "quality")
"""Folders of pipelines/ where the module of a table's name fills it."""

DECLARING = r"schemas/(?:results|answers)"
"""The folders where the file of a result or an answer has its name, and declares it."""

FILLED_ELSEWHERE = {
    "fetch_sessions": "pipelines/facts/fetches.py",
    "brokers": "pipelines/snapshots/topology.py",
    "topics": "pipelines/snapshots/topology.py",
    "replicas": "pipelines/snapshots/topology.py",
    "active_producers": "pipelines/snapshots/producers.py",
    "transactional_ids": "pipelines/snapshots/producers.py",
    "plans": "pipelines/feedback/runs/frozen_plans.py",
    "config_changes": "pipelines/feedback/writing/exclusive_section.py",
    "feedback_locks": "pipelines/feedback/writing/delta_lock.py",
    "pipeline_progress": "pipelines/streaming/sinks.py",
}
"""Tables that a module of another name fills. This list may only shrink."""

ARCHITECTURE = PAGES["ARCHITECTURE.md"]
MAX_LINES = 200
MAX_HOPS = 3
NOT_OURS = {"NEXT.md", "broker/server.properties"}
"""What `quotaflow init` writes on a user's machine."""


def named_after(table: str) -> list[str]:
    """Modules of a table's name, in the folders that fill tables, and files of heads."""
    fills = rf"pipelines/({'|'.join(FILLS)})/(\w+/)?{table}\.py|udfs/facts/{table}\.py"
    module = re.compile(rf"{fills}|{DECLARING}/{table}\.sql")
    return [path for path in FILES if module.fullmatch(path)]


def test_a_table_is_declared_under_its_name_in_one_file() -> None:
    for table in TABLES:
        files = rf"{DECLARING}/{table}\.sql|schemas/tables/{table}\.table"
        assert len([path for path in FILES if re.fullmatch(files, path)]) == 1


def test_the_module_that_fills_a_table_has_its_name_or_is_listed() -> None:
    by_name = {table: named_after(table) for table in TABLES}
    listed = {table: len(paths) for table, paths in by_name.items() if len(paths) != 1}
    assert listed == dict.fromkeys(FILLED_ELSEWHERE, 0), "the list has those without one alone"
    for table, paths in by_name.items():
        (path,) = paths or [FILLED_ELSEWHERE[table]]
        if not re.match(DECLARING, path):
            names = re.search(rf"\b({table}|{table.upper()})\b", text_of(path))
            assert names, f"{path} does not name {table}"


def test_a_view_is_one_file_of_its_name_in_the_folder_of_its_kind() -> None:
    for view in views.load().values():
        (file,) = (path for path in FILES if path.endswith(f"/{view.name}.sql"))
        folder = {"mart": r"marts/\w+"}.get(view.kind, view.kind)
        assert re.fullmatch(rf"schemas/views/{folder}/{view.name}\.sql", file)


def expanded(path: str) -> list[str]:
    """`a/{b,c}.py` as a/b.py and a/c.py."""
    braces = re.fullmatch(r"([^{]*)\{([^}]*)\}(.*)", path)
    if braces is None:
        return [path]
    before, names, after = braces.groups()
    return [one for name in names.split(",") for one in expanded(before + name + after)]


def folders_described() -> set[str]:
    """Folders in the first column of a table whose second column is not empty."""
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*\w[^|]*) \|$", ARCHITECTURE, re.M)
    quoted = [text for first, _ in rows for text in re.findall(r"`([^`]*)`", first)]
    return {path for text in quoted for path in expanded(text)}


def test_architecture_says_what_each_folder_does() -> None:
    code = [path for path in FILES if path.startswith(("pipelines/", "udfs/", "schemas/"))]
    folders = {f"{path.rpartition('/')[0]}/" for path in code if path.endswith((".py", ".sql"))}
    assert folders - folders_described() == set()


def test_architecture_is_short() -> None:
    assert len(ARCHITECTURE.splitlines()) <= MAX_LINES


def paths_in(page: str) -> set[str]:
    """What a page names as a path: in backticks, with a folder of ours or the ending of code."""
    prose = re.sub(r"(?s)```.*?```", "", page)
    words = [word for text in re.findall(r"`([^`\n]+)`", prose) for word in text.split()]
    folder, rest = "|".join(map(re.escape, FOLDERS)), r"[\w./{},<>*-]"
    is_path = re.compile(rf"({folder})/{rest}*|{rest}+\.(py|sql|md)")
    return {path for word in words if is_path.fullmatch(path := word.partition("::")[0])}


def exists(path: str) -> bool:
    """Whether it is in the repository, whole or as the end of a path; <name> is any name."""
    if (ROOT / path).exists():
        return True
    parts = re.split(r"<\w+>|\*", path.removesuffix("/"))
    pattern = r"[^/]+".join(map(re.escape, parts))
    file = re.compile(rf"(.*/)?{pattern}(/.*)?")
    return any(file.fullmatch(path) for path in FILES)


def test_paths_that_pages_name_exist() -> None:
    texts = {text: name for name, page in PAGES.items() for text in paths_in(page) - NOT_OURS}
    named = {path: name for text, name in texts.items() for path in expanded(text)}
    assert {path: name for path, name in named.items() if not exists(path)} == {}


def test_tests_that_pages_name_exist() -> None:
    for name, page in PAGES.items():
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
        assert [(file, test) for file, test in named if test not in functions_of(file)] == [], name


@pytest.mark.parametrize("name", PAGES)
def test_pages_that_a_page_links_exist(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", PAGES[name])
    ours = {link for link in links if not link.startswith(("http:", "https:"))}
    folder = (ROOT / name).parent
    assert sorted(link for link in ours if not (folder / link).exists()) == []
    # Who reads a checkout has no site: a page names the command that prints the same.
    of_site = ROOT / "docs/reference"
    assert [link for link in ours if of_site in (folder / link).resolve().parents] == []


def anchors(page: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^ *```.*?^ *```$", "", page), re.M)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("name", PAGES)
def test_headings_that_a_page_links_exist(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([\w-]+)\)", PAGES[name])
    folder = (ROOT / name).parent
    linked = {(folder / link if link else ROOT / name, anchor) for link, anchor in links}
    missing = [
        f"{page.name}#{anchor}"
        for page, anchor in linked
        if anchor not in anchors(page.read_text(encoding="utf-8"))
    ]
    assert sorted(missing) == []


def examples() -> list[tuple[str, list[str], str]]:
    """The worked examples of CONTRIBUTING.md: what is seen, its hops, and what the last one has."""
    rows = re.findall(r"^\| \d+ \| (.*) \| (`.*`) \| `(.*)` \|$", PAGES["CONTRIBUTING.md"], re.M)
    return [(seen, re.findall(r"`([^`]*)`", hops), term) for seen, hops, term in rows]


def test_ten_numbers_are_worked_examples() -> None:
    assert len(examples()) == 10


def letters(name: str) -> str:
    """A name as it is compared: `what_if` is what-if, `producer_ids` is Producer ids."""
    return re.sub(r"[\W_]", "", name).lower()


@pytest.mark.parametrize(("seen", "hops", "term"), examples())
def test_a_number_leads_to_its_code_by_names(seen: str, hops: list[str], term: str) -> None:
    assert len(hops) <= MAX_HOPS
    assert letters(Path(hops[0]).stem) in letters(seen)
    for path, after in pairwise(hops):
        assert re.search(rf"\b{Path(after).stem}\b", text_of(path)), f"{path} does not name {after}"
    assert term in text_of(hops[-1])


GLOSSARY = re.findall(r"^\|([^|]+)\|([^|]+)\|([^|]*)\|$", PAGES["docs/glossary.md"], re.M)
HEADS = {"word", "---"}


def test_glossary_is_short_and_defines_each_word_once() -> None:
    words = [word.strip() for cell, *_ in GLOSSARY for word in cell.split(",")]
    assert len(set(words) - HEADS) <= 80
    assert sorted({word for word in words if words.count(word) > 1} - HEADS) == []


def test_each_word_of_the_glossary_leads_to_code() -> None:
    names = {*TABLES, *views.load(), *Conf.model_fields}
    for words, *_, where in GLOSSARY:
        quoted = re.findall(r"`([^`]*)`", where)
        assert quoted or words.strip() in HEADS, f"{words} leads nowhere"
        unknown = [s for s in quoted if s.partition(".")[0] not in names and not exists(s)]
        assert unknown == []
