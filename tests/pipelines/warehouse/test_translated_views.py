"""Translations of views: each view has one, kept per user, and made again when it is not there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import sql_dialects, translated_views, views
from quotaflow.pipelines.warehouse.translated_views import in_duckdb

VIEW = "traffic_by_hour"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's empty cache folder, in a process that has translated nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    translated_views._translated.cache_clear()
    yield tmp_path / "quotaflow" / "views"
    translated_views._translated.cache_clear()


def again() -> str:
    """The translation as another process reads it."""
    translated_views._translated.cache_clear()
    return in_duckdb(VIEW)


def test_a_translation_is_made_once_for_all_processes(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_duckdb(VIEW)
    assert text == sql_dialects.in_duckdb(views.load()[VIEW].sql)
    assert [file.read_text(encoding="utf-8") for file in cache.iterdir()] == [text]
    monkeypatch.setattr(sql_dialects, "in_duckdb", lambda _: pytest.fail("translated again"))
    assert again() == text


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["no text", "a folder"])
def test_a_file_that_cannot_be_read_costs_a_new_translation(
    cache: Path, content: bytes | None
) -> None:
    text = in_duckdb(VIEW)
    (file,) = cache.iterdir()
    file.unlink()
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    assert again() == text


def test_a_user_without_a_folder_gets_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_duckdb(VIEW)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert again() == text
    monkeypatch.setattr(translated_views, "cache_folder", no_home)
    assert again() == text


def no_home() -> Path:
    raise ConfigError("~/.cache is in a home folder, and this user has none")


def test_another_view_or_translator_has_a_file_of_its_own(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_duckdb(VIEW)
    in_duckdb("client_latency")
    monkeypatch.setattr(translated_views, "_translator", lambda: b"the next version")
    again()
    assert len(list(cache.iterdir())) == 3
