"""What managed services let this pipeline read, by their documentation: none was tried."""

from dataclasses import dataclass
from importlib.resources import files

import yaml
from pydantic import ConfigDict, TypeAdapter


@dataclass(frozen=True, slots=True)
class ManagedService:
    """A service that is known by the end of its brokers' names.

    `highest` is the highest level that it allows; `limits` says what is missing, and what to use
    instead.
    """

    name: str
    hosts: tuple[str, ...]
    highest: str
    limits: str


_TEXT = files("quotaflow.pipelines.doctor").joinpath("managed_services.yaml").read_text("utf-8")
_EVERY = TypeAdapter(tuple[ManagedService, ...], config=ConfigDict(extra="forbid"))
SERVICES = _EVERY.validate_python(yaml.safe_load(_TEXT))


def of_servers(servers: str) -> ManagedService | None:
    """The service of these bootstrap servers; None if their names do not show one."""
    hosts = [server.strip().rpartition(":")[0].lower() for server in servers.split(",")]
    return next(
        (
            service
            for service in SERVICES
            if any(host.endswith(service.hosts) for host in hosts if _is_msk_or_other(host))
        ),
        None,
    )


def _is_msk_or_other(host: str) -> bool:
    """Whether a host of Amazon is a broker of MSK: machines there have names of its domain too."""
    return not host.endswith((".amazonaws.com", ".amazonaws.com.cn")) or ".kafka" in host
