"""Tables of tests in the YAML file beside a test: its cases by name, as lines that people read.

`!name 5 a=b` calls the builder of that name, `!name [..]` and `!name {..}` do with nested values,
`!*name ..` puts each of a builder's rows in its list, and $NAME is a value that the test names. A
list of plain values is a tuple, as rows of values are, and others are lists. `!list` or `!tuple`
before a list says it otherwise. `!with {..}` has the options of a call behind its other values.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .rows import at


class _Rows(list[Any]):
    """What stands in a list in place of the one value that gave them."""


@cache
def _tables(path: Path) -> dict[str, yaml.MappingNode]:
    root: Any = yaml.compose(path.read_text(encoding="utf-8"), _Loader)
    return {key.value: value for key, value in root.value}


def table(file: str, name: str, *builders: Callable[..., Any], **values: Any) -> dict[Any, Any]:
    """The cases of a table by their names; `file` is the test's own, and YAML lies beside it."""
    path = Path(file).with_name(Path(file).stem.removeprefix("test_") + ".yaml")
    node = _tables(path)[name]
    loader = _Loader("")
    loader.named = {each.__name__: each for each in (at, *builders)} | values
    made: dict[Any, Any] = loader.construct_document(node)
    assert len(made) == len(node.value), f"a name stands twice in {name} of {path.name}"
    return made


def rows(file: str, name: str, *builders: Callable[..., Any], **values: Any) -> list[Any]:
    """The same as rows for `cases` of several names: a case's name, then its values."""
    made = table(file, name, *builders, **values)
    return [(case, *values) for case, values in made.items()]


class _Loader(yaml.SafeLoader):
    named: dict[str, Any]

    def values(self, node: Any) -> list[Any]:
        made = (self.construct_object(each, deep=True) for each in node.value)
        return [value for each in made for value in (each if isinstance(each, _Rows) else [each])]

    def tuple(self, node: Any) -> tuple[Any, ...]:
        return (*self.values(node),)

    def sequence(self, node: Any) -> Any:
        is_plain = node.value and all(
            isinstance(each, yaml.ScalarNode) and each.tag.startswith("tag:yaml.org,2002:")
            for each in node.value
        )
        return self.tuple(node) if is_plain else self.values(node)

    def text(self, node: Any) -> Any:
        text = self.construct_scalar(node)
        return self.value(text) if node.style is None and text.startswith("$") else text

    def value(self, text: str) -> Any:
        value = self.named[text.removeprefix("$").removeprefix("*")]
        return _Rows(value) if text.startswith("$*") else value

    def options(self, node: Any) -> dict[Any, Any]:
        return self.construct_mapping(node, deep=True)

    def call(self, suffix: str, node: Any) -> Any:
        builder = self.named[suffix.removeprefix("*")]
        words: list[Any] = []
        options: dict[str, Any] = {}
        if isinstance(node, yaml.ScalarNode):
            for word in node.value.split():
                key, is_option, value = word.rpartition("=")
                options |= {key: self.word(value)} if is_option else {}
                words += [] if is_option else [self.word(value)]
        elif isinstance(node, yaml.MappingNode):
            options = self.options(node)
        else:
            words = self.values(node)
            options = words.pop() if words and node.value[-1].tag == "!with" else {}
        made = builder(*words, **options)
        if suffix.startswith("*"):
            return _Rows(made)
        # PyYAML would take one value alone of a generator.
        return list(made) if isinstance(made, Iterator) else made

    def word(self, text: str) -> Any:
        if text.startswith("@"):
            return at(float(text[1:]))
        return self.value(text) if text.startswith("$") else yaml.safe_load(text)


_Loader.add_constructor("tag:yaml.org,2002:seq", _Loader.sequence)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.text)
_Loader.add_constructor("!with", _Loader.options)
_Loader.add_constructor("!list", _Loader.values)
_Loader.add_constructor("!tuple", _Loader.tuple)
_Loader.add_multi_constructor("!", _Loader.call)
