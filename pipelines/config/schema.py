"""JSON Schema of conf, made from its sections, for editors of YAML."""

from typing import Any

from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.values import TEXT_MAPS

EDITOR_LINE = "# yaml-language-server: $schema="
"""The comment, with the place of the schema behind it, by which editors choose it for a file."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": ["string", "number", "boolean"]}


def schema() -> dict[str, Any]:
    """The schema of a file of conf: types, bounds, defaults, and no unknown keys.

    What sections check beside these (logins, secrets in plain text, values that need each other) is
    for `quotaflow conf check`.
    """
    whole = Conf.model_json_schema()
    for section, key in TEXT_MAPS:
        holder = whole["$defs"][whole["properties"][section]["$ref"].rpartition("/")[2]]
        # YAML's numbers and truths count as text there.
        holder["properties"][key]["additionalProperties"] = _TEXT
    # A section with all lines commented out is null.
    for name, described in whole["properties"].items():
        whole["properties"][name] = {"anyOf": [described, {"type": "null"}]}
    return {"$schema": _DIALECT} | whole | {"title": "conf of quotaflow"}
