"""Bodies of requests: no name of a client is kept, as a value or in a quote."""

import json

import pytest

from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, Pseudonyms
from quotaflow.udfs.rules.request_body import hidden_body

from ...cases import cases

HIDDEN = Pseudonyms(b"k" * 32, "k1")
UUID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
ME = HIDDEN.pseudonym(CLIENT_ID, "ann-laptop")
THEM = HIDDEN.pseudonym(CLIENT_ID, "bob-laptop")
BAD = HIDDEN.pseudonym(CLIENT_ID, "[bob-laptop")
TYPO = HIDDEN.pseudonym(CLIENT_ID, "clientid=ann")
HERE = HIDDEN.pseudonym(ADDRESS, "10.1.2.3")
PART = HIDDEN.pseudonym(ADDRESS, "10.1.2")

BODIES = {
    "a group's members": (
        {"memberId": f"ann-laptop-{UUID}", "leader": f"bob-laptop-{UUID}", "generationId": 3},
        {"memberId": f"{ME}-{UUID}", "leader": f"{THEM}-{UUID}", "generationId": 3},
    ),
    "what members of Kafka Streams say of their machines": (
        {"assignment": "AAE=", "userEndpoint": {"host": "10.1.2.3", "port": 80}, "host": "b1"},
        {"assignment": "[hidden]", "userEndpoint": {"host": HERE, "port": 80}, "host": "b1"},
    ),
    "the client's own name, wherever": (
        {"groupInstanceId": "ann-laptop", "topics": ["a", "ann-laptop"], "host": "10.1.2.3"},
        {"groupInstanceId": ME, "topics": ["a", ME], "host": HERE},
    ),
    "quotas altered": (
        {"entries": [{"entity": [{"entityType": "client-id", "entityName": "bob-laptop"}]}]},
        {"entries": [{"entity": [{"entityType": "client-id", "entityName": THEM}]}]},
    ),
    "an ACL of an address": (
        {
            "creations": [
                {"principal": "User:ann", "host": "10.1.2", "permissionType": 3},
                {"principal": "User:ann", "host": "*", "permissionType": 3},
            ],
            "errorMessage": "10.1.2 is no address",
        },
        {
            "creations": [
                {"principal": "User:ann", "host": PART, "permissionType": 3},
                {"principal": "User:ann", "host": "*", "permissionType": 3},
            ],
            "errorMessage": f"{PART} is no address",
        },
    ),
    "a filter of ACLs": (
        {"filters": [{"hostFilter": "10.1.2.3", "permissionType": 1}, {"hostFilter": None}]},
        {"filters": [{"hostFilter": HERE, "permissionType": 1}, {"hostFilter": None}]},
    ),
    "requested quotas": (
        {"components": [{"entityType": "ip", "matchType": 0, "match": "10.1.2.3"}]},
        {"components": [{"entityType": "ip", "matchType": 0, "match": HERE}]},
    ),
    "a default quota": (
        {"entity": [{"entityType": "client-id", "entityName": None}]},
        {"entity": [{"entityType": "client-id", "entityName": None}]},
    ),
    "a user, who is not hidden": (
        {"entity": [{"entityType": "user", "entityName": "ann"}]},
        {"entity": [{"entityType": "user", "entityName": "ann"}]},
    ),
    "a subscription": (
        {"configs": [{"name": "match", "configOperation": 0, "value": "client_id=bob-laptop"}]},
        {"configs": [{"name": "match", "configOperation": 0, "value": f"client_id={THEM}"}]},
    ),
    "a match that is refused, cited": (
        {
            "configs": [{"name": "match", "value": "client_id=[bob-laptop,clientid=ann"}],
            "errorMessage": "Illegal client matching pattern: client_id=[bob-laptop",
        },
        {
            "configs": [{"name": "match", "value": f"client_id={BAD},{TYPO}"}],
            "errorMessage": f"Illegal client matching pattern: client_id={BAD}",
        },
    ),
    "an address that is refused, cited": (
        {
            "entity": [{"entityType": "ip", "entityName": "10.1.2"}],
            "errorMessage": "10.1.2 is not a valid IP or resolvable host; not 10.1.23.",
        },
        {
            "entity": [{"entityType": "ip", "entityName": PART}],
            "errorMessage": f"{PART} is not a valid IP or resolvable host; not 10.1.23.",
        },
    ),
    "a member that is unknown, cited": (
        {"memberId": f"ann-laptop-{UUID}", "errorMessage": f"Member ann-laptop-{UUID} is none."},
        {"memberId": f"{ME}-{UUID}", "errorMessage": f"Member {ME}-{UUID} is none."},
    ),
    "the client itself, cited": (
        {"errorMessage": "ann-laptop of 10.1.2.3 may not, 10.1.2.34 may"},
        {"errorMessage": f"{ME} of {HERE} may not, 10.1.2.34 may"},
    ),
    "no message": (
        {"client_id": "bob-laptop", "errorMessage": None},
        {"client_id": THEM, "errorMessage": None},
    ),
    "an entity of an odd type": ({"entityType": 3, "name": ["match"]}, None),
    "one of no type at all": ({"entityType": [], "entityName": "x"}, None),
    "half of a pair": ({"a": "\ud800"}, {"a": "?"}),
}


@pytest.mark.parametrize(("body", "kept"), BODIES.values(), ids=BODIES)
def test_a_body_names_no_client(body: object, kept: object) -> None:
    plain = {CLIENT_ID: "ann-laptop", ADDRESS: "10.1.2.3"}
    assert json.loads(hidden_body(json.dumps(body), HIDDEN, plain)) == (kept or body)


@cases(
    "text",
    ("no JSON", "ann-laptop"),
    ("half of it", '{"a":"ann-laptop"'),
    ("too deep to walk", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
)
def test_a_body_that_cannot_be_walked_is_left_out_whole(text: str) -> None:
    kept = json.loads(hidden_body(text, HIDDEN, {CLIENT_ID: "ann-laptop"}))
    assert kept == {"omitted_bytes": len(text)}
