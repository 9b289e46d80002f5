"""docs/databricks.md: what it says to type fits the bundle."""

import json
import re
import shlex

from quotaflow.pipelines import config

from . import bundle
from .bundle import PROD, ROOT

PAGE = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
LINES = [shlex.split(line) for line in re.findall(r"^ +(databricks .*)$", PAGE, re.M)]
RESOLVED = bundle.resolve(PROD)
JOBS = RESOLVED["resources"]["jobs"]


def test_the_page_gives_each_variable_that_has_no_default() -> None:
    """Without one of them every command of the CLI ends with an error."""
    (block,) = re.findall(r'^ +(\{"catalog".*?\}\})$', PAGE, re.M | re.S)
    given = json.loads(block)
    required = {name for name, each in RESOLVED["variables"].items() if each == "given"}
    declared = bundle.load()["variables"]
    required |= {name for name, each in declared.items() if "default" not in each}
    assert required <= given.keys() <= declared.keys()
    assert given["operator_run_as"].keys() == {"service_principal_name"}


def test_each_job_that_is_run_by_hand_is_one() -> None:
    ran = [words for words in LINES if words[1:3] == ["bundle", "run"]]
    assert {words[words.index("-t") + 2] for words in ran} <= JOBS.keys()
    for words in ran:
        name = words[words.index("-t") + 2]
        declared = {each["name"] for each in JOBS[name].get("parameters", [])}
        given = words[words.index("--params") + 1 :] if "--params" in words else []
        assert {each.split("=")[0] for each in given} == declared


def test_each_secret_that_conf_names_is_put_there() -> None:
    put = {tuple(words[3:5]) for words in LINES if words[1:3] == ["secrets", "put-secret"]}
    named = set()
    for variable in ("conf", "operator_conf"):
        file = ROOT / RESOLVED["variables"][variable]
        text = config.load(file).model_dump_json()
        named |= {tuple(each.split("/")) for each in re.findall(r'"secret:([\w/-]+)"', text)}
    assert put == named


def test_the_certificate_is_copied_to_where_conf_reads_it() -> None:
    (copied,) = [words for words in LINES if words[1:3] == ["fs", "cp"]]
    conf = config.load(ROOT / RESOLVED["variables"]["conf"])
    assert copied[-1] == f"dbfs:{conf.kafka.properties['ssl.truststore.location']}"


def test_the_page_has_each_variable_and_each_job() -> None:
    for name in bundle.load()["variables"]:
        assert f"`{name}`" in PAGE, name
    for job in JOBS.values():
        assert f"| {job['name'].removeprefix('quotaflow ')} |" in PAGE
