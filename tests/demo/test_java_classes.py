"""Classes of a demo broker: compiled once, and again where their jar is damaged."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quotaflow.demo import java_classes

from ..cases import cases

LISTED = (("quotaflow.demo", "Tethered.java"),)


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What a stand-in for javac has written, into a cache of its own."""
    made: list[Path] = []

    def write(_jars: object, _sources: object, jar: Path) -> None:
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("quotaflow/Tethered.class", b"a class")
        made.append(jar)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(java_classes, "_sources", lambda _jars: LISTED)
    monkeypatch.setattr(java_classes, "_compile", write)
    return made


@cases(
    ("damage", "times"),
    ("as it was made", lambda _: None, 1),
    (
        "other bytes of the same size",
        lambda jar: jar.write_bytes(jar.read_bytes().replace(b"a class", b"another")),
        2,
    ),
    ("empty", lambda jar: jar.write_bytes(b""), 2),
    ("deleted", lambda jar: jar.unlink(), 2),
)
def test_a_jar_is_made_again_only_where_it_is_damaged(
    damage: Callable[[Path], object], times: int, compilations: list[Path]
) -> None:
    jar = java_classes.compiled([])
    damage(jar)
    assert java_classes.compiled([]) == jar
    assert compilations == [jar] * times
    with zipfile.ZipFile(jar) as archive:
        assert archive.read("quotaflow/Tethered.class") == b"a class"
