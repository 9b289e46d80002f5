"""Translations: each text has one, kept per user, and made again when it is not there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import kept_translations, sql_dialects, views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb, tables_in

from ...cases import cases

VIEW = views.load()["traffic_by_hour"].sql
Kept = Callable[[str], object]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's empty cache folder, in a process that has translated nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path / "quotaflow" / "translations"
    forget()


def forget() -> None:
    """As a new process that has translated nothing."""
    in_duckdb.cache_clear()
    tables_in.cache_clear()


def again() -> str:
    """The translation as another process reads it."""
    forget()
    return in_duckdb(VIEW)


def test_a_translation_is_made_once_for_all_processes(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_duckdb(VIEW)
    assert text == sql_dialects.in_duckdb(VIEW)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(sql_dialects, "in_duckdb", lambda _: pytest.fail("translated again"))
    assert again() == text


@cases(
    "damage",
    ("no text", lambda kept: b"\xff" + kept[1:]),
    ("empty, as after a loss of power", lambda _: b""),
    ("cut short", lambda kept: kept[:-1]),
    ("other text", lambda kept: kept.replace(b"FROM", b"FR0M")),
    ("a folder", None),
)
@pytest.mark.parametrize("kept", [in_duckdb, tables_in])
def test_a_file_that_is_not_what_was_kept_costs_a_new_translation(
    cache: Path, kept: Kept, damage: Callable[[bytes], bytes] | None
) -> None:
    made = kept(VIEW)
    (file,) = cache.iterdir()
    content = file.read_bytes()
    file.unlink()
    if damage is None:
        file.mkdir()
    else:
        file.write_bytes(damage(content))
    forget()
    assert kept(VIEW) == made


def test_a_user_without_a_folder_gets_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_duckdb(VIEW)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert again() == text
    monkeypatch.setattr(kept_translations, "cache_folder", no_home)
    assert again() == text


def no_home() -> Path:
    raise ConfigError("~/.cache is in a home folder, and this user has none")


def test_another_view_or_translator_has_a_file_of_its_own(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_duckdb(VIEW)
    in_duckdb(views.load()["client_latency"].sql)
    monkeypatch.setattr(kept_translations, "_translator", lambda: b"the next version")
    again()
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("sql", [VIEW, "SELECT 1"], ids=["a view", "no table"])
def test_what_a_text_reads_is_kept_too(
    cache: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    names = tables_in(sql)
    assert names == sql_dialects.tables_in(sql)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(sql_dialects, "tables_in", lambda _: pytest.fail("parsed again"))
    forget()
    assert tables_in(sql) == names
