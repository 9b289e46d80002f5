"""A quota at each of Kafka's eight levels, on a real cluster."""

from kafka.protocol.admin import client_quotas

from quotaflow.demo.cluster import LocalCluster

PRODUCED, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
ANY = ""
"""The default of users, or of client ids."""
Entity = tuple[str | None, str | None]

# (level, key) -> (user, client id) it is set for. No user has a share in request time but erin,
# who sends nothing: with two kinds of entities a broker logs the limit of each client it knows.
LEVELS: dict[tuple[int, str], Entity] = {
    (1, PRODUCED): ("alice", "q-1"),
    (2, PRODUCED): ("alice", ANY),
    (3, PRODUCED): ("bob", None),
    (4, PRODUCED): (ANY, "q-4"),
    (5, PRODUCED): (ANY, ANY),
    (6, FETCHED): (ANY, None),
    (7, TIME): (None, "q-7"),
    (8, TIME): (None, ANY),
    (3, TIME): ("erin", None),
}


def limit(level: int, key: str) -> float:
    """A quota nobody comes near, and no other level has."""
    return {PRODUCED: 1e9, FETCHED: 2e9, TIME: 3e5}[key] + level


def set_quotas(cluster: LocalCluster, offset: float | None) -> None:
    """Set every quota to its limit and an offset, or remove them all, in one request."""
    request = client_quotas.AlterClientQuotasRequest
    entries = [
        request.EntryData(
            entity=[
                request.EntryData.EntityData(entity_type=kind, entity_name=name or None)
                for kind, name in zip(("user", "client-id"), entity, strict=True)
                if name is not None
            ],
            ops=[
                request.EntryData.OpData(
                    key=key, value=limit(level, key) + (offset or 0.0), remove=offset is None
                )
            ],
        )
        for (level, key), entity in LEVELS.items()
    ]
    with cluster.admin() as admin:
        message = request(entries=entries, validate_only=False)
        answer = admin._manager.run(admin._manager.send, message)
    assert {entry.error_code for entry in answer.entries} == {0}
