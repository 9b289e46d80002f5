"""The section of conf about writes to the cluster: who writes, and how the records are signed."""

from typing import Annotated

from pydantic import Field, field_validator

from quotaflow.pipelines.config.base import Section, Topic, matches
from quotaflow.pipelines.config.secrets import KEY_REFERENCES

Deployment = Annotated[
    str, matches(r"[\w.@-]{1,100}", "write up to 100 letters, digits, . _ @ and -")
]


class FeedbackSection(Section):
    """Who writes configs, the keys that sign its records, and the topic of its leases.

    `deployment` names the quotaflow that writes: others leave its configs alone. Without it the
    name follows from the warehouse. Without `may_write` nothing is written to brokers, not even to
    give back: for a copy beside the deployment that writes. `signing_keys` are references. The
    first key signs, and all of them verify, so a new key goes first and the old one stays until its
    leases are over. Without a key, one is made for a warehouse in a folder.
    """

    deployment: Deployment | None = None
    may_write: bool = True
    signing_keys: list[str] = Field(default_factory=list)
    lease_topic: Topic = "quotaflow-leases"

    @field_validator("signing_keys")
    @classmethod
    def _references(cls, references: list[str]) -> list[str]:
        if any(not reference.startswith(KEY_REFERENCES) for reference in references):
            raise ValueError("a key is a reference: write env:NAME, secret:scope/key or file:/path")
        return references
