"""YAML of conf, without what changes a value silently.

A key twice in a section is an error, because PyYAML takes the last one. `1:30` and `0144` are text,
because YAML 1.1 reads them as 90 and 100. A text that takes long to read is refused.
"""

import re
from typing import Any

import yaml

_MAX_DEPTH = 32
_MAX_NODES = 100_000
_TAG = "tag:yaml.org,2002:"
_OTHER_FORMS = {f"{_TAG}{name}" for name in ("int", "float", "timestamp")}
_FORMS = {
    "int": r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)",
    "float": r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}


class RefusedError(yaml.MarkedYAMLError):
    """YAML that conf does not take. Its problem has no value."""


class Loader(yaml.SafeLoader):
    """Builds nodes and values of conf. Raises yaml.YAMLError."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._nodes = 0
        self._open: list[str] = []

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The node that begins here."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        anchor = getattr(event, "anchor", None)
        is_alias = isinstance(event, yaml.AliasEvent)
        if is_alias and anchor in self._open:
            raise _refused(f"*{anchor} is a part of itself", event)
        opened = [anchor] if anchor and not is_alias else []
        self._count(event)
        self._open += opened
        self._depth += 1
        node = super().compose_node(parent, index)
        if is_alias:
            self._count_all(node, event)
        self._depth -= 1
        del self._open[len(self._open) - len(opened) :]
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """A map. Raises RefusedError for a key that is written twice."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in lines:
                both = f"lines {lines[key.value]} and {line}"
                raise _refused(f"{key.value} is written twice ({both}): leave one out", key)
            lines[str(key.value)] = line
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """The value of a node. Raises RefusedError for a number that Python does not read."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError):
            raise _refused("a value that cannot be read", node) from None

    def _count_all(self, node: Any, where: Any) -> None:
        """Count the nodes that an alias repeats."""
        for each in node.value if isinstance(node, yaml.CollectionNode) else ():
            for child in each if isinstance(each, tuple) else (each,):
                self._count(where)
                self._depth += 1
                self._count_all(child, where)
                self._depth -= 1

    def _count(self, where: Any) -> None:
        self._nodes += 1
        if self._depth >= _MAX_DEPTH:
            raise _refused(f"it is nested more than {_MAX_DEPTH} deep", where)
        if self._nodes > _MAX_NODES:
            raise _refused(f"it has more than {_MAX_NODES:,} values", where)


def _refused(problem: str, near: Any) -> RefusedError:
    return RefusedError(problem=problem, problem_mark=near.start_mark)


Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag not in _OTHER_FORMS]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _name, _form in _FORMS.items():
    Loader.add_implicit_resolver(
        f"{_TAG}{_name}", re.compile(rf"(?:{_form})$"), list("-+.0123456789")
    )


def value(text: str) -> Any:
    """What a text is. Raises yaml.YAMLError."""
    return yaml.load(text, Loader)  # noqa: S506  it is a SafeLoader


def root(text: str) -> Any:
    """The node of a text. Raises yaml.YAMLError."""
    return yaml.compose(text, Loader)
