"""The base of all sections of conf, and the texts of their problems."""

import ast
import difflib
import inspect
import re
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from quotaflow.pipelines.config import kafka_names

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

LARGEST = 10**15
"""The largest number of bytes, rows or units per second that a value may be: 64 bits have room for
its products.
"""
LARGEST_MB = LARGEST // 1024**2
Positive = Annotated[int, Field(gt=0, le=LARGEST)]
LONGEST_S = 10 * 366 * 86_400
"""The longest time that a value may ask for: no table keeps more, and no calendar ends in it."""
Seconds = Annotated[int, Field(gt=0, le=LONGEST_S)]
Days = Annotated[int, Field(gt=0, le=LONGEST_S // 86_400)]
Windows = Annotated[int, Field(gt=0, le=LONGEST_S // 86_400)]
WindowMs = Annotated[int, Field(gt=0, le=86_400_000, multiple_of=1_000)]
"""Windows of a rate, of a day at most: all of them together last no longer than LONGEST_S."""
Bound = Annotated[float, Field(allow_inf_nan=False)]
PositiveRate = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]

LONGEST_LEASE_S = 30 * 86_400
LeaseSeconds = Annotated[int, Field(ge=60, le=LONGEST_LEASE_S)]


def _as_kafka_prints(principal: str) -> str:
    kind, colon, name = principal.partition(":")
    if not colon or not name or kind == "arn" or "=" in kind:
        quotes = "; in a list in [] quote a name that has a comma" if "=" in principal else ""
        raise ValueError(f"write User:{principal} instead of {principal}{quotes}")
    return principal


Principal = Annotated[str, AfterValidator(_as_kafka_prints)]


def _topic_of_kafka(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        near = re.sub(r"[^a-zA-Z0-9._-]", "_", name)[:249]
        right = "null for none" if near in {"", ".", ".."} else near
        raise ValueError(f"a topic has 1 to 249 letters, digits, . _ and -: write {right}")
    return name


Topic = Annotated[str, AfterValidator(_topic_of_kafka)]


def bare(user: str) -> str:
    """The bare name of a user. Raises ValueError for a principal: quotas have the name alone."""
    if user.startswith("User:"):
        raise ValueError(f"write {user.removeprefix('User:')} instead of {user}")
    return user


def matches(pattern: str, message: str) -> AfterValidator:
    """Refuse text of another form; `message` says what to write, with an example."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(message)
        return text

    return AfterValidator(checked)


class Section(BaseModel):
    """A part of conf: immutable, and strict about its keys.

    The text below a key is its description, in the JSON Schema and in the reference of the site.
    """

    # Not by use_attribute_docstrings: it parses the source of each section in each command.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """The text below each key that has one, by key."""
        (section,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(section, ast.ClassDef)
        return {
            key.target.id: inspect.cleandoc(text)
            for key, below in pairwise(section.body)
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(text := below.value.value, str)
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        described = handler(core_schema)
        keys = handler.resolve_ref_schema(described)["properties"]
        for key, text in cls.descriptions().items():
            keys[key]["description"] = text
        return described


_UNPRINTED = {
    ("kafka",),
    ("privacy",),
    ("spark", "conf"),
    ("warehouse", "store"),
    ("alerts", "receivers"),
    ("monitoring", "forward"),
    ("serve", "token"),
    ("feedback", "signing_keys"),
}


def problems(error: ValidationError, model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """The texts of all problems, each with the keys of its place; `model` is the validated one."""
    return {
        _problem(item, model): tuple(map(str, item["loc"]))
        for item in error.errors(include_url=False)
    }


def _problem(item: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {where}{_nearest_key(item['loc'], model)}"
    text = str(item["msg"].removeprefix("Value error, ")) + _nearest_value(item)
    if not where:
        return text
    return f"{where} = {item['input']!r}: {text}" if _printable(item) else f"{where}: {text}"


def _printable(item: Any) -> bool:
    # A value in the wrong place here may be a secret, which must not be printed.
    is_plain = isinstance(item["input"], str | int | float | bool)
    return is_plain and item["loc"][:1] not in _UNPRINTED and item["loc"][:2] not in _UNPRINTED


def _nearest_value(item: Any) -> str:
    """The nearest value of a closed set, which pydantic lists in its message."""
    if item["type"] != "literal_error":
        return ""
    values = re.findall(r"'([^']+)'", item["ctx"]["expected"])
    near = difflib.get_close_matches(str(item["input"]), values, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _nearest_key(location: tuple[str | int, ...], model: Any) -> str:
    for part in location[:-1]:
        # A number is an index in a list of models.
        model = model if isinstance(part, int) else model_in(model.model_fields[part].annotation)
    if location[0] == "kafka" and (right := kafka_names.property_of(str(location[-1]))):
        return f" (did you mean properties.{right}?)"
    near = difflib.get_close_matches(str(location[-1]), list(model.model_fields), n=1, cutoff=0.5)
    keys = ", ".join(model.model_fields)
    return f" (did you mean {near[0]}?)" if near else f" (known: {keys})"


def model_in(annotation: Any) -> Any:
    """The model in a list of them, or in one that may be none; else the type itself."""
    return next(
        (argument for argument in get_args(annotation) if hasattr(argument, "model_fields")),
        annotation,
    )
