"""The name of this deployment and the keys of its records, from conf or from quotaflow's home."""

import hashlib
import os
import secrets as random_secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from quotaflow.pipelines.config import FeedbackSection, WarehouseSection, home, secrets
from quotaflow.pipelines.errors import ConfigError, FeedbackError
from quotaflow.pipelines.feedback.ledger.leases import Item, read_book
from quotaflow.pipelines.feedback.ledger.signing import HOW_TO_MAKE_A_KEY, Signer
from quotaflow.pipelines.warehouse import place
from quotaflow.udfs.counted import counted

_FOLDER, _KEY_FILE, _ID_FILE = "feedback", "signing_key", "id"
_ID_CHARS = 12


def signer(section: FeedbackSection, warehouse: WarehouseSection, *, make: bool = False) -> Signer:
    """What signs and verifies the records of this deployment.

    Without conf's keys, a warehouse in a folder has a key file in quotaflow's home, which `make`
    creates. Without a key nothing verifies. Raises ConfigError for a key that cannot be read.
    """
    return Signer(_keys(section, warehouse, make=make), _name(section, warehouse, make=make))


def writing_signer(
    section: FeedbackSection,
    warehouse: WarehouseSection,
    cluster_id: str,
    items: Iterable[Item],
) -> Signer:
    """The same for what writes: it makes a key where there is none, and nothing that it signed.

    `items` are the records of the topic of leases. Raises FeedbackError if a lost key signed some.
    """
    signer_now = signer(section, warehouse)
    if not signer_now.keys and not warehouse.catalog_schema:
        refused = read_book(items, signer_now, cluster_id).refused.values()
        live = [each for each in refused if not each.is_over]
        if live:
            leases = counted(len(live), "lease")
            raise FeedbackError(
                f"the signing key {key_file()} is gone, and the topic {section.lease_topic} "
                f"has {leases} of deployment {signer_now.deployment} that it signed. No other key "
                "is made, because it would verify none of them. Put a copy of the file back. If "
                f"it is lost, make another with (umask 077; openssl rand -hex 32 > {key_file()}): "
                "then quotaflow adopt shows each lease, and takes it over by its name"
            )
    return signer(section, warehouse, make=True)


def key_file() -> Path:
    """The file of the key that is made where conf names none."""
    return home() / _FOLDER / _KEY_FILE


def _keys(
    section: FeedbackSection, warehouse: WarehouseSection, *, make: bool
) -> tuple[bytes, ...]:
    name = "feedback.signing_keys"
    if section.signing_keys:
        return tuple(secrets.key(name, each) for each in section.signing_keys)
    if warehouse.catalog_schema:
        if make:
            raise ConfigError(f"no key signs what is written: {HOW_TO_MAKE_A_KEY}")
        return ()
    path = key_file()
    if make:
        _make(path, random_secrets.token_hex(32))
    return (secrets.key(name, f"file:{path}"),) if path.exists() else ()


def _name(section: FeedbackSection, warehouse: WarehouseSection, *, make: bool) -> str:
    if section.deployment or warehouse.catalog_schema:
        return section.deployment or str(warehouse.catalog_schema)
    # Two machines may have a warehouse at the same path.
    path = home() / _FOLDER / _ID_FILE
    if make:
        _make(path, random_secrets.token_hex(16))
    random_id = path.read_text(encoding="utf-8") if path.exists() else ""
    about = f"{random_id}\n{place.root(warehouse)}"
    return f"quotaflow-{hashlib.sha256(about.encode()).hexdigest()[:_ID_CHARS]}"


def _make(path: Path, text: str) -> None:
    """Create a file that its owner alone can read, unless it exists."""
    if path.exists():
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first
            os.link(new, path)
        new.unlink()
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
