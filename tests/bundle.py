"""The bundle as Databricks' CLI 1.13 resolves it for a target, without the CLI.

Files are merged, then what the target overrides, then variables and references are replaced, and
the target's mode is applied (bundle/config/mutator/resourcemutator/apply_presets.go). Mode
development prefixes names of jobs, dashboards and schemas. It leaves names of secret scopes alone,
and pauses no schedule that has a pause_status.
"""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
DEV, PROD = TARGETS = ("dev", "prod")
USER = {"short_name": "you", "userName": "you@example.com"}
GIVEN: dict[str, Any] = {"operator_run_as": {"service_principal_name": "0f3c-operator"}}
"""What a deployment gives for variables without a default, where a word is not enough."""
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
Json = dict[str, Any]


def merged(one: Any, other: Any) -> Any:
    """Two configurations in one, as the CLI merges files and targets: `other` wins.

    It drops a `false` of a target that would override `true`: so no target may have one.
    """
    assert other is not False
    if isinstance(one, dict) and isinstance(other, dict):
        both = {key: merged(one[key], other[key]) for key in one.keys() & other.keys()}
        return {**one, **other, **both}
    return deepcopy(other)


def load(jobs_text: str | None = None) -> Json:
    """databricks.yml and what it includes. `jobs_text` is read in place of jobs.yaml."""
    whole: Json = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    for name in whole["include"]:
        text = jobs_text if name == "jobs.yaml" else None
        text = (ROOT / name).read_text(encoding="utf-8") if text is None else text
        whole = merged(whole, yaml.safe_load(text))
    return whole


def resolve(target: str, jobs_text: str | None = None) -> Json:
    """The bundle of a target, each reference replaced by a value of its type."""
    whole = load(jobs_text)
    chosen = whole.pop("targets")[target]
    values = chosen.pop("variables", {})
    whole = merged(whole, chosen)
    variables = {
        name: values.get(name, declared.get("default", GIVEN.get(name, "given")))
        for name, declared in whole["variables"].items()
    }
    resources = whole["resources"]
    is_dev = chosen["mode"] == "development"
    if is_dev:
        prefix_names(resources)
    sources = {
        "var": variables,
        "resources": resources,
        "workspace": {"file_path": "/Workspace/files", "current_user": USER},
        "bundle": {**whole["bundle"], "target": target},
    }
    return _resolved({**whole, "variables": variables}, sources)


def prefix_names(resources: Json) -> None:
    """What mode development does to resources of these kinds."""
    you = USER["short_name"]
    for job in resources["jobs"].values():
        job["name"] = f"[dev {you}] {job['name']}"
        job["tags"] = {"dev": you} | job.get("tags", {})
    for board in resources["dashboards"].values():
        board["display_name"] = f"[dev {you}] {board['display_name']}"
    for schema in resources["schemas"].values():
        schema["name"] = f"dev_{you}_{schema['name']}"


def _resolved(value: Any, sources: Json) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(item, sources) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(element, sources) for element in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole:
        return _referenced(whole[1], sources)
    return _REFERENCE.sub(lambda match: str(_referenced(match[1], sources)), value)


def _referenced(name: str, sources: Json) -> Any:
    value: Any = sources
    for part in name.split("."):
        value = value[part]
    return _resolved(value, sources)


def lost(given: Any, kept: Any, path: str = "") -> list[str]:
    """Paths of `given` that a round trip through the SDK's own classes dropped or changed."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [p for key, v in given.items() for p in lost(v, kept.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [p for i, (a, b) in pairs for p in lost(a, b, f"{path}[{i}]")]
    return [] if given == kept or (given == [] and kept is None) else [path]
