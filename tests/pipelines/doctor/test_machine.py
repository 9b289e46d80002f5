"""Checks of a machine whose Spark is elsewhere, as on serverless compute."""

from importlib.metadata import version
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.doctor import machine
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding
from quotaflow.pipelines.warehouse import private_folder

from ...cases import cases


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> config.Conf:
    """Conf of a machine without Java, with a local Spark unless a test changes it."""
    for name in ("SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return config.Conf(warehouse=config.WarehouseSection(path=str(tmp_path)))


def findings(conf: config.Conf) -> dict[str, Finding]:
    return {finding.subject: finding for finding in machine.findings(conf)}


def test_a_session_of_our_own_needs_java(no_java: config.Conf) -> None:
    seen = findings(no_java)
    assert seen["JDK"].state == BAD
    assert "jars for Spark" in seen
    assert "Spark" not in seen


def is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & 0o005)


def test_tables_that_everybody_can_read_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    folder.chmod(0o755)  # under any umask
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
    subject = "rights of the tables"
    # pytest's own folders keep other users out.
    assert findings(conf)[subject].state == OK
    monkeypatch.setattr(private_folder, "is_open_to_others", is_open)
    seen = findings(conf)[subject]
    assert (seen.state, seen.remedy) == (WARNING, f"chmod o-rwx {folder}")
    assert folder.stat().st_mode & 0o777 == 0o755
    folder.chmod(0o750)
    assert findings(conf)[subject].state == OK


def test_a_user_without_a_home_has_no_place_for_jars(
    no_java: config.Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    seen = findings(no_java)["jars for Spark"]
    assert (seen.state, seen.remedy) == (BAD, "set HOME, or XDG_CACHE_HOME")


def test_jars_of_another_version_are_no_jars_of_this_one(
    no_java: config.Conf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = tmp_path / "quotaflow" / "jars" / "spark-jars-0123456789ab"
    other.mkdir(parents=True)
    (other / "checked.json").write_text("{}")
    assert findings(no_java)["jars for Spark"].state == WARNING


def test_what_lacks_comes_with_the_wheel_as_no_index_has_it(
    no_java: config.Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        machine, "find_spec", lambda name: name not in {"pyspark", "jinja2"} or None
    )
    seen, wheel = (
        findings(no_java),
        f"pip install 'quotaflow-{version('quotaflow')}-py3-none-any.whl",
    )
    assert seen["pyspark"].remedy == f"install the wheel with its extra local: {wheel}[local]'"
    assert seen["extras"].remedy == (
        "if they are needed: install the wheel with its extras local, report: "
        f"{wheel}[local,report]'"
    )


@cases(
    ("variable", "value", "place"),
    (
        "connect",
        "SPARK_REMOTE",
        "sc://a.example:15002/;token=x",
        "Spark Connect at a.example:15002",
    ),
    ("Databricks", "DATABRICKS_RUNTIME_VERSION", "client.5.0", "Databricks' own"),
)
def test_where_spark_is_elsewhere_neither_java_nor_jars_are_needed(
    no_java: config.Conf, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, place: str
) -> None:
    monkeypatch.setenv(variable, value)
    seen = findings(no_java)
    assert seen["Spark"] == Finding("Spark", OK, place)
    assert not {"JDK", "jars for Spark"} & seen.keys()
