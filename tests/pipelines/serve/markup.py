"""The markup of a page as a browser builds it: what no name of a client may add to."""

import re
from collections.abc import Iterator
from typing import Any

from justhtml import JustHTML

Mark = tuple[str, ...]
_SHAPED = {"class", "src", "role", "type", "rel", "http-equiv", "content"}
_PATH = re.compile(r"(/[a-z/_.]*\?[a-z]+=|/static/[a-z_]+\.(?:css|js)|/(?=$)|/[a-z]+$|#|data:,)")
_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Markup:
    """A page that the parser of the HTML standard read without one error.

    Raises StrictModeError for a page with an error, such as an attribute that a name ended.
    """

    def __init__(self, text: str) -> None:
        self.root: Any = JustHTML(text, sanitize=False, strict=True).root
        self.unprinted = _UNPRINTED.findall(text)

    def nodes(self) -> Iterator[Any]:
        """All elements."""
        left = [self.root]
        while left:
            node = left.pop()
            left += getattr(node, "children", None) or []
            if getattr(node, "attrs", None) is not None:
                yield node

    @property
    def marks(self) -> set[Mark]:
        """Each element with its attributes, and those values of them that act."""
        marks: set[Mark] = set()
        for node in self.nodes():
            marks.add((node.name,))
            for name, value in node.attrs.items():
                marks.add((node.name, name))
                if name == "style":
                    marks.add((node.name, name, re.sub(r"[\d.]+", "0", value)))
                elif name == "href":
                    path = _PATH.match(value)
                    marks.add((node.name, name, path[0] if path else f"elsewhere: {value}"))
                elif name in _SHAPED:
                    marks.add((node.name, name, value))
        return marks

    @property
    def links(self) -> list[str]:
        """The addresses of this server's pages, of the time that they show."""
        hrefs = [node.attrs.get("href") or "" for node in self.nodes() if node.name == "a"]
        return [each for each in hrefs if each.startswith("/") and "since=" not in each]

    @property
    def problems(self) -> list[Mark]:
        """What no page has, with any names."""
        inline = [
            (node.name, node.attrs.get("src") or "")
            for node in self.nodes()
            if node.name in {"script", "style"} and any(node.children)
        ]
        acting = [mark for mark in self.marks if len(mark) > 1 and mark[1].startswith("on")]
        foreign = [mark for mark in self.marks if mark[-1].startswith("elsewhere: ")]
        return [*inline, *acting, *foreign, *((each,) for each in self.unprinted)]
