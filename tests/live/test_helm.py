"""The chart by Helm, and what it renders by the schemas of Kubernetes' API."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..test_chart import CHART, EXAMPLES
from . import fetched

pytestmark = pytest.mark.more

NEWEST = "1.37"
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
# Of Prometheus' operator: Kubernetes has no schema of these.
OF_OTHERS = {"PodMonitor", "PrometheusRule"}
CHECK = """
import json, sys, kubernetes_validate
for document in json.load(sys.stdin):
    kubernetes_validate.validate(document, sys.argv[1], strict=True)
"""


@pytest.fixture(scope="module")
def helm() -> Path:
    return fetched.from_go(HELM)


def template(
    helm: Path, *words: str | Path, version: str = NEWEST
) -> "subprocess.CompletedProcess[str]":
    # Helm as Go builds it takes an old version for that of the cluster.
    command = [helm, "template", "q", CHART, "--kube-version", version, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(helm: Path, *words: str | Path, version: str = NEWEST) -> list[dict[str, Any]]:
    done = template(helm, *words, version=version)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spec_of = {
        "CronJob": lambda spec: spec["jobTemplate"]["spec"]["template"]["spec"],
        "Deployment": lambda spec: spec["template"]["spec"],
        "StatefulSet": lambda spec: spec["template"]["spec"],
    }
    return [spec_of[d["kind"]](d["spec"]) for d in documents if d["kind"] in spec_of]


def problems(documents: list[dict[str, Any]], version: str) -> str:
    """What the schemas of this version have against the first document that does not fit."""
    done = subprocess.run(
        [sys.executable, "-c", CHECK, version],
        input=json.dumps(documents),
        env=os.environ | {"PYTHONPATH": str(fetched.from_pypi("kubernetes-validate==1.37.0"))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def test_a_field_that_the_api_lacks_is_a_problem(helm: Path) -> None:
    (job, *_) = [each for each in rendered(helm) if each["kind"] == "CronJob"]
    assert problems([job], NEWEST) == ""
    assert "concurency" in problems([job | {"spec": {**job["spec"], "concurency": 1}}], NEWEST)


@pytest.mark.parametrize("example", [None, *EXAMPLES], ids=lambda path: path and path.name)
@pytest.mark.parametrize("version", ["1.27", NEWEST])
def test_what_it_renders_is_of_the_api(helm: Path, example: Path | None, version: str) -> None:
    words = ["--values", example] if example else []
    subprocess.run([helm, "lint", "--strict", CHART, *words], check=True)
    documents = rendered(helm, *words, version=version)
    of_kubernetes = [each for each in documents if each["kind"] not in OF_OTHERS]
    assert problems(of_kubernetes, version) == ""
    every = pods(documents)
    assert every
    for pod in every:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_what_is_enabled_is_there(helm: Path) -> None:
    plain = {each["kind"] for each in rendered(helm)}
    assert plain == {"ServiceAccount", "ConfigMap", "PersistentVolumeClaim", "CronJob"} | {
        "NetworkPolicy"
    }
    documents = rendered(helm, "--values", CHART / "examples" / "catalog.yaml")
    names = {each["metadata"]["name"] for each in documents if each["kind"] == "CronJob"}
    assert names == {"q-quotaflow-run", "q-quotaflow-daily", "q-quotaflow-feedback"}
    assert {each["kind"] for each in documents} >= {"StatefulSet", *OF_OTHERS}
    (conf,) = [each["data"] for each in documents if each["kind"] == "ConfigMap"]
    operator = yaml.safe_load(conf["operator.yaml"])
    assert operator["kafka"]["properties"]["sasl.username"] == "quotaflow-operator"
    assert "sasl.username" not in conf["conf.yaml"]


def test_a_run_without_end_beside_others_is_refused_over_a_folder(helm: Path) -> None:
    done = template(helm, "--set", "mode=every")
    assert done.returncode != 0
    assert "catalog_schema" in done.stderr
