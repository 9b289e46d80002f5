"""Sections of conf for people: what the cluster is called, and which team owns which names."""

import re
from typing import Annotated

from pydantic import Field, model_validator

from quotaflow.pipelines.config.base import Section, matches

_Name = Annotated[str, matches(r"[^\x00-\x1f\x7f`]{1,64}", "write 1 to 64 characters in one line")]
_MAX_WILDCARDS = 4
Pattern = Annotated[
    str,
    matches(
        rf"(?=(?:[^*]*\*){{0,{_MAX_WILDCARDS}}}[^*]*\Z)[^\x00-\x1f\x7f{{}}]{{1,255}}",
        f"write 1 to 255 characters without {{ and }}, and * for any text at most "
        f"{_MAX_WILDCARDS} times, such as payments-*",
    ),
]
"""A name in which * matches any text."""
Patterns = Annotated[list[Pattern], Field(max_length=50)]


def is_like(text: str, pattern: str) -> bool:
    """Whether a pattern, in which * is any text, matches a whole text.

    What lies between two * is sought once, from the left, so the time is linear in the text.
    """
    first, *others = map(re.escape, pattern.split("*"))
    if not others:
        return text == pattern
    *middle, last = others
    sought = "".join(f"(?>.*?{each})" for each in middle)
    return re.fullmatch(f"{first}{sought}.*{last}", text, re.DOTALL) is not None


class ClusterSection(Section):
    """What people call the cluster, its environment, and who owns it: for the head of a report."""

    name: _Name | None = None
    """Name of the cluster, 1 to 64 characters."""
    environment: _Name | None = None
    """Its environment, such as production, 1 to 64 characters."""
    owner: _Name | None = None
    """Who owns it and where to ask, 1 to 64 characters."""


class Team(Section):
    """A team, and the patterns of what it owns.

    A pattern is a name in which `*` matches any text: 1 to 255 characters, `*` at most 4 times, no
    `{` and no `}`. A team has at most 50 patterns of a kind. Traffic belongs to the first team that
    owns the principal or the client id, else to the first that owns the topic. Stored bytes belong
    to the team of the topic.
    """

    team: _Name
    """Name of the team, 1 to 64 characters."""
    principals: Patterns = Field(default=[])
    """Patterns of principals as brokers print them, such as `User:pay-*`."""
    clients: Patterns = Field(default=[])
    """Patterns of client ids. Clients choose their id, so another client can claim it: prefer
    principals.
    """
    topics: Patterns = Field(default=[])
    """Patterns of topics: the team of traffic whose client is of no team, and of stored bytes."""

    @model_validator(mode="after")
    def _owns_something(self) -> "Team":
        if not (self.principals or self.clients or self.topics):
            raise ValueError("name principals, clients or topics of the team")
        return self


Teams = Annotated[list[Team], Field(max_length=100)]
