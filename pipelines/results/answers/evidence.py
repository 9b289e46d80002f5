"""Arrow fields for what a rule rests on: a dataclass of numbers and names that may be unknown."""

import types
from collections.abc import Iterator
from dataclasses import fields
from importlib.resources import files
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from quotaflow.schemas.table import DOUBLE, LONG, STRING

_TYPES = {float: DOUBLE, int: LONG, str: STRING}


def fields_of(evidence: type[Any]) -> Iterator[pa.Field]:
    """The fields of the text's rows for all numbers and names of the evidence."""
    hints = get_type_hints(evidence)
    for each in fields(evidence):
        present = _present(hints[each.name])
        if present in _TYPES:
            yield pa.field(each.name, _TYPES[present])


def _present(hint: Any) -> Any:
    if not isinstance(hint, types.UnionType):
        return hint
    (present,) = (each for each in get_args(hint) if each is not type(None))
    return present


def code_of(*modules: str) -> str:
    """The text of modules of `udfs/rules`, by which a change of a rule shows."""
    folder = files("quotaflow.udfs.rules")
    return "".join(folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in modules)
