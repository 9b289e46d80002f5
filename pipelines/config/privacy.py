"""What may not stand in tables as it came: a section of conf."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.config.base import Section, matches
from quotaflow.pipelines.errors import ConfigError
from quotaflow.udfs.rules.pseudonym import MIN_KEY_BYTES, Pseudonyms

Column = Literal["client_address", "client_id"]


class PrivacySection(Section):
    """With a `key` (env:NAME or secret:scope/key) these columns hold pseudonyms, from ingest on.

    `key_id` stands in every pseudonym: give another with another key. Tables written before keep
    theirs, and nothing joins across the two.
    """

    key: str | None = None
    key_id: Annotated[
        str, matches("[a-z0-9]{1,16}", "write up to 16 small letters and digits, such as k2")
    ] = "k1"
    columns: list[Column] = Field(default=["client_address", "client_id"], min_length=1)

    @field_validator("key")
    @classmethod
    def _by_reference(cls, key: str | None) -> str | None:
        if key is not None and not key.startswith(secrets.REFERENCES):
            raise ValueError("holds a secret in plain text: write env:NAME or secret:scope/key")
        return key

    def hides(self, column: str) -> bool:
        """Whether a column holds pseudonyms."""
        return self.key is not None and column in self.columns

    def pseudonyms(self) -> Pseudonyms | None:
        """What hides them; None where nothing is hidden. Raises ConfigError without a good key."""
        if self.key is None:
            return None
        key = secrets.look_up("privacy.key", self.key).encode()
        if len(key) < MIN_KEY_BYTES:
            raise ConfigError(
                f"privacy.key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed: "
                "take openssl rand -hex 32"
            )
        return Pseudonyms(key, self.key_id, frozenset(self.columns))
