"""What managed services let this pipeline read, by their documentation: none was tried."""

from dataclasses import dataclass

from quotaflow.schemas.levels import ADMIN_API


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


SERVICES = (
    ManagedService(
        "Amazon MSK",
        (".amazonaws.com", ".amazonaws.com.cn"),
        ADMIN_API,
        "it delivers broker logs of level INFO alone, which have no requests, and loads no metrics "
        "reporter of yours, so no receiver; IAM or ACLs must allow Describe and DescribeConfigs. "
        "MSK Serverless has no client quotas of Kafka and hides brokers' configs",
    ),
    ManagedService(
        "Confluent Cloud",
        (".confluent.cloud",),
        ADMIN_API,
        "it shows no broker log and takes no receiver; client quotas are those of its own API, and "
        "log dirs, moves and most configs of brokers are not shown",
    ),
    ManagedService(
        "Azure Event Hubs",
        (
            *(".servicebus.windows.net", ".servicebus.chinacloudapi.cn"),
            ".servicebus.usgovcloudapi.net",
        ),
        ADMIN_API,
        "it has Kafka's protocol for producers and consumers, and no brokers behind it: topics and "
        "some configs are all that it shows; its throttles are those of throughput units",
    ),
    ManagedService(
        "Aiven",
        (".aivencloud.com",),
        ADMIN_API,
        "its service logs have no requests, and brokers load no receiver of yours; set client "
        "quotas by its own API (`avn service quota`), or both would overwrite each other",
    ),
    ManagedService(
        "Redpanda Cloud",
        (".cloud.redpanda.com",),
        ADMIN_API,
        "its brokers are no Java: no request logger, no receiver; client quotas are for client ids "
        "and prefixes of them, not for users, and moves are throttled by a property of its own",
    ),
)


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
