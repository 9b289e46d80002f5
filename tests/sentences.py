"""The page of sentences: `python -m tests.sentences` prints what people read, as tests plant it."""

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from tempfile import TemporaryDirectory

import yaml

from quotaflow.pipelines import config, reasons
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.monitoring.notifications import open_tables, read_notifications
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import ANSWERS, TABLES

from .conftest import GOLDEN
from .pipelines.areas import test_surfaces as surfaces
from .pipelines.report.pages import scope
from .rows import HOSTILE, Row, at
from .schemas.views.filled_views import FILLED
from .schemas.views.view_tables import make_table, make_tables_and_answers

_HEAD = """\
# Sentences

This page is for contributors who change a sentence. It answers: how do the sentences of quotaflow
read, all in one go? Tests plant the rows that they are about.
`python -m tests.sentences > docs/sentences.md` writes the page.
"""
CASES = yaml.safe_load((GOLDEN / "reasons.yaml").read_text(encoding="utf-8"))
_HOUR = Period(None, timedelta(hours=1))
_NUMBER = re.compile(r"\d[\d,.:]*")
Sentence = tuple[str, str]
"""Where it stands, and its text."""


def of_codes() -> Iterator[Sentence]:
    """The sentence and the cure of each code of reasons.yaml, with the row of its case."""
    for (view, column), wordings in reasons.wordings().items():
        for code, wording in wordings.by_code.items():
            yield f"{view}.{column}", CASES[f"{view}.{column}"][code]["text"]
            if wording.cure and "{" not in wording.cure:
                yield f"{view}.{column}", wording.cure


def of_tables() -> Iterator[Sentence]:
    """What `why`, the report and notifications say of planted rows."""
    for content, names in ((planted(), (surfaces.BAD,)), (plain(FILLED), ("alice", "orders"))):
        with TemporaryDirectory() as folder:
            warehouse = Warehouse(config.WarehouseSection(path=folder))
            make_tables_and_answers(warehouse, content)
            computed = FolderReader(warehouse)
            # What is computed replaces what was planted.
            for table in ANSWERS.keys() & content.keys():
                rows = computed.rows(f"SELECT * FROM {table}")
                make_table(warehouse, TABLES[table], [*rows, *content[table]])
            reader = FolderReader(warehouse)
            for name in names:
                yield from _of_why(reader, name)
            for section in sections(scope(warehouse, "c1", until=at(65), now=at(120))):
                yield from ((f"report: {section.title}", text) for text in _of_section(section))
            conf = config.Conf(warehouse=warehouse.conf)
            times = at(-86_400), at(86_400)
            for notice in read_notifications(open_tables(conf, *times), conf, *times):
                yield "notifications", notice.text


def plain(content: surfaces.Tables) -> surfaces.Tables:
    """The rows with plain names in place of hostile ones."""

    def cell(value: object) -> object:
        return value.replace(HOSTILE, "app") if isinstance(value, str) else value

    return {
        table: [{name: cell(value) for name, value in row.items()} for row in rows]
        for table, rows in content.items()
    }


def planted() -> surfaces.Tables:
    """One cluster with the rows of every problem."""
    content: surfaces.Tables = {}
    for case in surfaces.CASES:
        for table, rows in surfaces.base(case).items():
            every = content.setdefault(table, [])
            moved: list[Row] = [row | {"cluster_id": "c1"} for row in rows]
            every += [row for row in moved if row not in every]
    return content


def _of_why(reader: FolderReader, name: str) -> Iterator[Sentence]:
    answer = why(reader, name, _HOUR, "c1", config.Conf())
    for area in answer.areas:
        for finding in area.findings:
            yield from ((f"why: {area.name}", text) for text in _of_finding(finding))


def _of_finding(finding: Finding) -> Iterator[str]:
    yield finding.text
    yield finding.next_step or ""


def _of_section(section: ReportSection) -> Iterator[str]:
    yield from (*section.sentences, section.advice, *section.left_out)
    for alarm in section.alarms:
        yield from _of_finding(alarm)


def sentences() -> dict[str, list[str]]:
    """The sentences by place; of those that differ in numbers alone the first."""
    by_place: dict[str, dict[str, str]] = {}
    for place, text in (*of_codes(), *of_tables()):
        if text:
            by_place.setdefault(place, {}).setdefault(_NUMBER.sub("#", text), text)
    return {place: list(texts.values()) for place, texts in by_place.items()}


def text() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for place, texts in sentences().items():
        parts.append(f"\n## {place}\n\n" + "".join(f"- {each}\n" for each in texts))
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(text())
