"""The demo cluster's users: random passwords, stored only in files of mode 0600."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

SCRAM_USER = "bob"
"""The one client that logs in with SCRAM-SHA-256, all others with PLAIN."""

CLIENTS = (
    *("admin", "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan"),
    *("mallory", "shipper"),
)
_MODULE = "org.apache.kafka.common.security"


class Credentials:
    """One password per user, new for every cluster."""

    def __init__(self) -> None:
        self._passwords = {user: secrets.token_urlsafe(24) for user in (*CLIENTS, "broker")}

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self._passwords)})"

    def password(self, user: str) -> str:
        """Raises KeyError with the existing users."""
        if user not in self._passwords:
            raise KeyError(f"no user {user!r}, there are {', '.join(self._passwords)}")
        return self._passwords[user]

    def client_login(self, user: str) -> dict[str, str]:
        """`sasl.*` of a Java client."""
        password = self.password(user)
        module = "scram.Scram" if user == SCRAM_USER else "plain.Plain"
        login = f'{_MODULE}.{module}LoginModule required username="{user}" password="{password}";'
        return {"sasl.mechanism": mechanism(user), "sasl.jaas.config": login}

    def librdkafka_login(self, user: str) -> dict[str, str]:
        """`sasl.*` of a librdkafka client."""
        return {
            "sasl.mechanism": mechanism(user),
            "sasl.username": user,
            "sasl.password": self.password(user),
        }

    def client_listener(self) -> dict[str, str]:
        """JAAS of the listener for clients; SCRAM users are in the cluster's metadata."""
        users = " ".join(
            f'user_{user}="{self._passwords[user]}"' for user in CLIENTS if user != SCRAM_USER
        )
        return {
            "plain.sasl.jaas.config": f"{_MODULE}.plain.PlainLoginModule required {users};",
            "scram-sha-256.sasl.jaas.config": f"{_MODULE}.scram.ScramLoginModule required;",
        }

    def internal_listener(self) -> str:
        """JAAS of the listener between brokers: both sides of the login."""
        login = self.client_login("broker")["sasl.jaas.config"]
        return login.replace(";", f' user_broker="{self._passwords["broker"]}";')


def mechanism(user: str) -> str:
    """The SASL mechanism this user logs in with."""
    return "SCRAM-SHA-256" if user == SCRAM_USER else "PLAIN"


def write_private(path: Path, properties: Mapping[str, str]) -> Path:
    """A Java properties file that only its owner can read, from the first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{key}={value}\n" for key, value in properties.items())
    return path
