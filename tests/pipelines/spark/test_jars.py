"""Jars: fetched once, checked against sums, one clear error for whatever is missing."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from quotaflow.pipelines.errors import JarError, MissingToolError
from quotaflow.pipelines.spark import jars, java

from ...cases import cases

FETCH = """
from quotaflow.pipelines.spark import jars
print(len(jars.spark_jars()))
"""


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "quotaflow" / "jars"


@pytest.mark.parametrize("base", ["", "cache", "./cache"])
def test_a_relative_cache_folder_is_ignored(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert jars.cache_folder() == tmp_path / ".cache" / "quotaflow"


@pytest.fixture
def small_set(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Two jars that a stand-in for Ivy writes: what is fetched is the test's to change."""
    content = {"a-1.jar": b"a", "b-2.jar": b"b"}
    sums = "".join(f"{hashlib.sha256(c).hexdigest()}  {jar}\n" for jar, c in content.items())
    conf = empty_cache / "conf"
    conf.mkdir(parents=True)
    (conf / "spark-jars.sha256").write_text(sums)

    def write(_module: object, scratch: Path, _total: int, _progress: jars.Progress) -> None:
        (scratch / "jars").mkdir()
        for jar, bytes_ in content.items():
            (scratch / "jars" / jar).write_bytes(bytes_)

    monkeypatch.setattr(jars, "files", lambda _package: conf)
    monkeypatch.setattr(jars, "_run_ivy", write)
    return content


def fake_java(folder: Path, says: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "java"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["spark-jars", "kafka-jars"])
def test_the_module_file_and_the_sums_name_the_same_jars(name: str) -> None:
    conf = files("quotaflow.conf")
    listed = re.findall(r'name="([^"]+)" rev="([^"]+)"', (conf / f"{name}.xml").read_text())
    summed = [line.split()[1] for line in (conf / f"{name}.sha256").read_text().splitlines()]
    assert sorted(f"{module}-{rev}.jar" for module, rev in listed) == sorted(summed)


def test_no_jar_of_the_spark_set_is_one_pyspark_ships() -> None:
    pyspark_jars = {path.name for path in jars._pyspark_jars().glob("*.jar")}
    modules = {re.sub(r"-\d[\w.]*\.jar$", "", name) for name in pyspark_jars}
    ours = {re.sub(r"-\d[\w.]*\.jar$", "", path.name) for path in jars.spark_jars()}
    assert ours & modules == set()


def test_a_warm_start_runs_no_ivy(monkeypatch: pytest.MonkeyPatch) -> None:
    jars.kafka_jars()
    monkeypatch.setattr(jars, "_run_ivy", None)
    assert len(jars.kafka_jars()) == 48


def test_each_tenth_jar_and_the_last_one_are_reported() -> None:
    command = "for jar in $(seq 23); do echo '  [SUCCESSFUL ] a.jar (9ms)'; done"
    reported: list[str] = []
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as ivy:
        jars._follow(ivy, "a-set", 23, reported.append)
    assert reported == [f"fetching a-set, once: {count} of 23" for count in (10, 20, 23)]


def test_a_set_is_exactly_the_listed_jars(small_set: dict[str, bytes]) -> None:
    small_set["stranger-3.jar"] = b"nobody asked for this"
    assert [path.name for path in jars.spark_jars()] == ["a-1.jar", "b-2.jar"]


def test_a_jar_that_differs_is_named_with_both_sums(
    small_set: dict[str, bytes], empty_cache: Path
) -> None:
    small_set["b-2.jar"] = b"not b"
    with pytest.raises(JarError) as error:
        jars.spark_jars()
    for part in ("b-2.jar", hashlib.sha256(b"b").hexdigest(), hashlib.sha256(b"not b").hexdigest()):
        assert part in str(error.value)
    assert list(empty_cache.glob("spark-jars-*/")) == []


def other_bytes(jar: Path) -> None:
    """As a disk damages them: size and times stay."""
    stat = jar.stat()
    jar.write_bytes(b"?" * stat.st_size)
    os.utime(jar, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.usefixtures("small_set")
@cases(
    "damage",
    ("a jar of the same size and times but other bytes", other_bytes),
    ("a jar cut short", lambda jar: jar.write_bytes(b"")),
    ("a jar deleted", lambda jar: jar.unlink()),
)
def test_a_damaged_cache_is_fetched_again(damage: Callable[[Path], object]) -> None:
    damage(jars.spark_jars()[0])
    assert [path.read_bytes() for path in jars.spark_jars()] == [b"a", b"b"]


@pytest.mark.usefixtures("small_set")
def test_a_set_is_there_once_it_is_fetched_and_while_it_is_intact(empty_cache: Path) -> None:
    (empty_cache / "spark-jars-of-another-version").mkdir()
    assert not jars.has_spark_jars()
    fetched = jars.spark_jars()
    assert jars.has_spark_jars()
    other_bytes(fetched[1])
    assert not jars.has_spark_jars()


@pytest.mark.usefixtures("small_set")
def test_a_touched_jar_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(jars.spark_jars()[0], (1, 1))
    monkeypatch.setattr(jars, "_run_ivy", None)
    assert len(jars.spark_jars()) == 2


@pytest.mark.usefixtures("small_set")
def test_an_interrupted_fetch_leaves_nothing(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_module: object, scratch: Path, *_: object) -> None:
        (scratch / "jars").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jars, "_run_ivy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jars.spark_jars()
    assert [path.name for path in empty_cache.iterdir() if path.suffix != ".lock"] == ["conf"]
    assert len(jars.spark_jars()) == 2


@pytest.mark.usefixtures("small_set")
def test_what_a_killed_fetch_left_is_cleared(empty_cache: Path) -> None:
    left_over = empty_cache / ".spark-jars-killed" / "jars"
    left_over.mkdir(parents=True)
    jars.spark_jars()
    assert not left_over.parent.exists()


@pytest.mark.spark
def test_two_first_runs_at_once_fetch_once_and_agree(empty_cache: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [run.communicate(timeout=300)[0].strip() for run in runs] == ["9", "9"]
    assert [path.name for path in empty_cache.iterdir() if path.name.startswith(".")] == []


@pytest.mark.spark
def test_no_network_says_which_set_and_that_it_is_needed_once(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", nowhere)
    with pytest.raises(MissingToolError, match=r"spark-jars \(9 jars, needed once.*offline"):
        jars.spark_jars()
    assert list(empty_cache.glob("spark-jars-*/")) == []


def test_no_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda _name: None)
    with pytest.raises(MissingToolError, match=r"whl\[local\]"):
        jars.spark_jars()


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="no java found: install a JDK 17"):
        jars.kafka_jars()


@cases(
    ("says", "expected"),
    ("Java 11", 'openjdk version "11.0.2"', "is Java 11, at least 17"),
    ("Java 8's old form", 'java version "1.8.0_402"', "is Java 8, at least 17"),
    ("something else called java", "what?", "names no version"),
)
def test_a_java_that_will_not_do_is_named(
    says: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'bin', says).parent}:/bin")
    with pytest.raises(MissingToolError, match=expected):
        jars.kafka_jars()


def test_java_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_java(tmp_path / "bin", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.java() == path


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingToolError, match=re.escape(f"JAVA_HOME={tmp_path} has no bin/java")):
        java.java()
