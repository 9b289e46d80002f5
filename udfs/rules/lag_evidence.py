"""What the rule of lag_cause.py rests on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What tables show of a group and a topic, over the last ten minutes. None: not known.

    Shares are from 0 to 1: of a member's time for `_time_share`, of the records left for
    `_lag_share`. Of several clients and brokers it is the greatest.
    """

    trend: str | None = None
    records_in_per_s: float | None = None
    records_out_per_s: float | None = None
    """How many offsets the group moves on in a second."""
    in_ratio: float | None = None
    """Records written in a second, over what was usual before, within a day."""
    out_ratio: float | None = None
    """The same of how fast the group's offsets move on."""
    stalled_lag_share: float | None = None
    """In partitions whose offset did not move for three minutes."""
    unassigned_lag_share: float | None = None
    """In partitions that no member has, by the last snapshot."""
    reread_lag_share: float | None = None
    """Records that the group had read, before it went back to an earlier offset."""
    beyond_end_partitions: int | None = None
    """Partitions in which its offset is past the end."""
    partitions: int | None = None
    hot_partition: int | None = None
    """The one with the most lag."""
    hot_lag_share: float | None = None
    hot_in_ratio: float | None = None
    """Records written to it in a second, over the mean of the other partitions."""
    group_state: str | None = None
    members: int | None = None
    heartbeats: int | None = None
    commits: int | None = None
    recent_commits: int | None = None
    """Of the last three minutes."""
    fetches: int | None = None
    """Fetches of the group's clients; None: no request log shows any fetch of the cluster."""
    consumed_bytes: int | None = None
    """Bytes that they read of the topic; None as fetches."""
    recent_bytes: int | None = None
    """Those of the last three minutes."""
    acquired_records: int | None = None
    """Records that members of a share group got: brokers log none of their bytes."""
    groups_of_client: int | None = None
    """Groups that share a client id and principal with this one: their fetches are not apart."""
    fetches_per_s: float | None = None
    """Of one member from one broker."""
    throttle_time_share: float | None = None
    throttled_by: str | None = None
    quota: float | None = None
    limit_share: float | None = None
    """Part of the answers with records that ended exactly at one limit."""
    limited_by: str | None = None
    limit_bytes: int | None = None
    broker_time_share: float | None = None
    broker_id: int | None = None
    broker_ms: float | None = None
    """Time of one fetch in that broker, without the wait for records."""
    other_brokers_ms: float | None = None
    """The same at the other brokers, for all consumers."""
    network_time_share: float | None = None
    network_ms: float | None = None
    """Time of one fetch between broker and client."""
    cross_rack_share: float | None = None
    """Part of the bytes read from another rack; None: racks are not known."""
    rebalances: int | None = None
    rebalance_time_share: float | None = None
    """Part of the time in which members had to stop, since the group was first seen."""
    rebalance_trigger: str | None = None
    poll_idle_ratio: float | None = None
    """Part of its time that the application waits in poll, of the busiest member (telemetry)."""
    time_between_polls_ms: float | None = None
    last_poll_s: float | None = None
    """Since the last poll, of the member that is longest ago (telemetry)."""
    poll_timeouts: int | None = None
    """Members that left since they did not poll within max.poll.interval.ms, in an hour."""
    out_of_range_answers: int | None = None
    blocked_records: int | None = None
    """Offsets after an open transaction, which who reads committed records must wait for."""
    open_transaction_s: float | None = None
    """Since a snapshot first saw the transaction that blocks the group."""
    producer_id: int | None = None
    transaction_of: str | None = None
    """Transactional id of that transaction, or its producer id in words."""
    open_partition: int | None = None
    start_offset: int | None = None
    """Where that transaction starts in open_partition."""
    uncommitted_partitions: int | None = None
    """Partitions with records that a member has had for a minute, and the group never committed."""
    assigned_partitions: int | None = None
    """Partitions of the topic that members have; None: the snapshot has not all members."""
    fenced_answers: int | None = None
    """Answers to static members that another one had their place."""
    instance_claimants: int | None = None
    """Members with one group.instance.id."""
    group_instance_id: str | None = None
    stuck_partition: int | None = None
    """One that rests, while its member goes on with others."""
    stuck_lag_share: float | None = None
