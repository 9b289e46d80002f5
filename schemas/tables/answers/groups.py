"""Answers about groups."""

from quotaflow.schemas.columns import CLUSTER_ID
from quotaflow.schemas.table import BOOLEAN, INT, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.groups import COORDINATOR_ID, GROUP_ID

REBALANCES = Table(
    name="rebalances",
    comment=(
        "One row per rebalance of a group that the request log shows, over the last two days. When "
        "it was, how long it took and kept members from reading, and who caused it. What clients "
        "name is no proof of who is guilty; the principal is what the broker authenticated."
    ),
    columns=(
        CLUSTER_ID,
        GROUP_ID,
        Column("group_type", STRING, "classic, consumer, share or streams"),
        Column(
            "group_epoch",
            INT,
            "classic: generation that it led to; else epoch that members reached",
        ),
        COORDINATOR_ID,
        Column(
            "started_at",
            TIMESTAMP,
            "classic: when the first request to join it was received; else when the first member "
            "reached the epoch",
        ),
        Column(
            "ended_at",
            TIMESTAMP,
            "classic: when the last member got its assignment, or the generation started if none "
            "did; else when the last member reached the epoch",
        ),
        Column("duration_ms", LONG, "from started_at to ended_at"),
        Column(
            "stopped_ms",
            LONG,
            "how long members could not read: of an eager assignor from the first request of a "
            "member of the generation before to the last assignment; null: see stopped_reason",
        ),
        Column(
            "stopped_reason",
            STRING,
            "why stopped_ms is null: no_stop (members keep what they do not give up: cooperative, "
            "and all types but classic), no_members_before (nobody had to stop, or it is not "
            "known), unknown_assignor, incomplete; null: stopped_ms is known",
        ),
        Column("assignor", STRING, "classic: protocol that the group chose; null: other types"),
        Column("members", INT, "members of the generation, or that reached the epoch"),
        Column(
            "trigger",
            STRING,
            "member_joined; member_left (it said so, or stopped polling and said so); "
            "missed_heartbeats (a member did not come back and had not left); "
            "subscription_changed; partitions_changed (by the reason that the leader gave); "
            "unknown. Of several the first in time",
        ),
        Column("trigger_member_id", STRING, "member that did so; null: not known"),
        Column("trigger_client_id", STRING, "its client.id: untrusted text"),
        Column("trigger_principal", STRING, "its authenticated principal"),
        Column("reason", STRING, "what its client gave as its reason (KIP-800): untrusted text"),
        Column(
            "is_complete",
            BOOLEAN,
            "classic: all members of the generation got an assignment; else all members that were "
            "there before and did not leave reached the epoch, or a later one",
        ),
    ),
    key=("cluster_id", "group_id", "group_type", "group_epoch", "started_at"),
    time="started_at",
    clustering=("started_at", "group_id"),
)
