"""The section of conf about writes to the cluster: who writes, and how the records are signed."""

from typing import Annotated

from pydantic import Field, field_validator

from quotaflow.pipelines.config.base import Section, Topic, matches
from quotaflow.pipelines.config.secrets import KEY_REFERENCES

Deployment = Annotated[
    str, matches(r"[\w.@-]{1,100}", "write up to 100 letters, digits, . _ @ and -")
]


class FeedbackSection(Section):
    """Who writes configs, the keys that sign its records, and the topic of its leases:
    docs/config_changes.md#keys-and-leases.

    A new signing key goes first. The old one stays until its leases are over.
    """

    deployment: Deployment | None = None
    """Name of this quotaflow among those that write to the cluster; two that share a name count as
    one. null: the schema of a catalog, or a name by the folder of the tables and a random id in
    quotaflow's home.
    """
    may_write: bool = True
    """False: nothing is written to brokers, not even to restore: `apply --yes`, `restore --yes`,
    `release`, `adopt` and `capture --yes` end with an error. For a copy beside the deployment that
    writes.
    """
    signing_keys: list[str] = Field(default=[])
    """References to keys of 32 bytes or more: the first key signs, all keys verify. Only `apply`,
    `capture`, `restore` and `adopt` read them. None: a warehouse in a folder has
    `feedback/signing_key` in quotaflow's home, of mode 0600, which the first `apply --yes` makes; a
    warehouse in a catalog writes nothing.
    """
    lease_topic: Topic = "quotaflow-leases"
    """Compacted topic of one partition with the values to restore."""

    @field_validator("signing_keys")
    @classmethod
    def _references(cls, references: list[str]) -> list[str]:
        if any(not reference.startswith(KEY_REFERENCES) for reference in references):
            raise ValueError("a key is a reference: write env:NAME, secret:scope/key or file:/path")
        return references
