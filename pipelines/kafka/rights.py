"""Which rights a login needs, from Kafka's refusal, which names only the kind of resource."""

import re
from collections.abc import Mapping

from quotaflow.schemas import acls

# An error's name in any of its spellings: of Kafka, of its Java classes, of kafka-python.
_REFUSED = re.compile(
    r"(?i)(cluster|topic|group|transactional[ _]?id)[ _]?authorization|"
    r"not authorized to access (topic|group)"
)
_KINDS = {kind.replace("-", ""): kind for kind in (acls.CLUSTER, acls.TOPIC, acls.GROUP)}
_KINDS["transactionalid"] = acls.TRANSACTIONAL_ID

_BY_KEY: Mapping[str, str | None] = {
    **{key: f"ingest.{key}" for key in acls.WAYS_IN},
    acls.LEASES: f"feedback.{acls.LEASES}",
}


def hint(role: str, error_text: str, topics: Mapping[str, str | None] | None = None) -> str:
    """The rights that a login of this role needs, to append to a refusal; "" for other texts.

    `topics` are the names of topics, by the keys of conf that name them.
    """
    match = _REFUSED.search(error_text)
    if match is None:
        return ""
    kind = _KINDS[re.sub("[ _]", "", (match[1] or match[2]).lower())]
    rights = [acl for acl in acls.needed(role, topics or _BY_KEY) if acl.resource_type == kind]
    if not rights:
        return ""
    by_resource: dict[str, list[str]] = {}
    for acl in rights:
        by_resource.setdefault(acl.name + ("*" if acl.is_prefix else ""), []).append(acl.operation)
    needs = [
        f"{' and '.join(names)} on {kind} {resource}" for resource, names in by_resource.items()
    ]
    return f": this login needs {', '.join(needs)} (quotaflow init prints its ACLs)"
