"""Quotas as Terraform's kafka_quota; what it cannot express is a comment."""

from quotaflow.pipelines.feedback.planning import terraform

from ....cases import cases
from ..fake_configs import desired, planned


def blocks(*rows: object) -> list[str]:
    made = planned(*rows)  # type: ignore[arg-type]
    return list(terraform.blocks(made))


def test_each_entity_is_a_resource() -> None:
    (block,) = blocks(
        desired("alice"), desired("alice", config_key="request_percentage", config_value="12.5")
    )
    assert block.splitlines() == [
        'resource "kafka_quota" "user_alice" {',
        '  entity_name = "alice"',
        '  entity_type = "user"',
        "  config = {",
        '    "producer_byte_rate" = "1000"',
        '    "request_percentage" = "12.5"',
        "  }",
        "}",
    ]


def test_two_names_of_one_resource_are_two_resources() -> None:
    names = [block.splitlines()[0] for block in blocks(desired("a.b"), desired("a-b"))]
    assert sorted(names) == [
        'resource "kafka_quota" "user_a_b" {',
        'resource "kafka_quota" "user_a_b_2" {',
    ]


def test_a_name_is_text_to_terraform() -> None:
    (block,) = blocks(desired('x" ${file("/etc/passwd")} %{ if true }\n}'))
    (line,) = (line for line in block.splitlines() if "entity_name" in line)
    assert line == r'  entity_name = "x\" $${file(\"/etc/passwd\")} %%{ if true }\n}"'


@cases(
    "row",
    ("of a user with a client id", desired("a", entity_client_id="c\nd")),
    ("a removal", desired("b", config_value=None, prior_value="9")),
    (
        "of a broker",
        desired(
            "1",
            entity_type="broker",
            config_key="leader.replication.throttled.rate",
            config_value="9000000",
        ),
    ),
)
def test_what_no_resource_can_have_is_a_comment(row: object) -> None:
    (comment,) = blocks(row)
    assert comment.startswith("# no kafka_quota can have this: ")
    assert "\n" not in comment
