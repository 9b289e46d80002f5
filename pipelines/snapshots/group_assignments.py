"""`group_assignments`: the members of groups, and the partitions assigned to each."""

from collections.abc import Iterator
from typing import Any

from quotaflow.pipelines.kafka.cluster_state import Partition
from quotaflow.pipelines.snapshots.groups import ObservedGroups
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, Pseudonyms


def observe(
    groups: ObservedGroups, pseudonyms: Pseudonyms | None
) -> Iterator[Row | UnansweredPart]:
    """Every member of the groups, with its client hidden where there are pseudonyms."""
    yield from groups.unanswered
    for group_id, described in groups.descriptions.items():
        for member in described.members:
            partitions = member.partitions
            row = {
                "group_id": group_id,
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                # Kafka prints an address of Java, with a slash before it.
                "client_address": member.client_host.removeprefix("/"),
                "rack_id": member.rack_id or None,
                "member_epoch": member.member_epoch,
                "assigned_partitions": partitions
                if partitions is None
                else [{"topic": topic, "partition": index} for topic, index in partitions],
            }
            yield row if pseudonyms is None else _hidden(row, pseudonyms)


def partitions_of(groups: ObservedGroups) -> set[Partition]:
    """The partitions that members have."""
    return {
        partition
        for described in groups.descriptions.values()
        for member in described.members
        for partition in member.partitions or ()
    }


def _hidden(row: dict[str, Any], pseudonyms: Pseudonyms) -> Row:
    return row | {
        "member_id": pseudonyms.member_id(row["member_id"]),
        "client_id": pseudonyms.pseudonym(CLIENT_ID, row["client_id"]),
        "client_address": pseudonyms.pseudonym(ADDRESS, row["client_address"]),
    }
