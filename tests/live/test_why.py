"""`quotaflow why` about clients of the real cluster, one of them throttled by its quota."""

from pathlib import Path

import pytest

from quotaflow.demo.traffic import DAVE_QUOTA_BYTES_PER_S

from ..command_line import Command, in_options

OF_DAVE = (
    "User:dave as rdk-exports-dave: ",
    "charged to producer_byte_rate ",
    " throttled, ",
    "most likely by its producer_byte_rate.",
    f"user dave may use {DAVE_QUOTA_BYTES_PER_S:,} bytes/s of producer_byte_rate",
    "--entity-type users --entity-name dave --add-config producer_byte_rate=",
)
OF_ALICE = ("Nothing throttled it in this time. No client quota binds it.",)
OF_MALLORY = (
    "User:mallory took new producer ids at ",
    "No stock broker throttles that (KIP-936)",
    "User:mallory: cause: producer_per_batch: ",
    "next: keep one producer and close it at the end",
    "Nothing throttled it in this time.",
)


@pytest.mark.parametrize(
    ("name", "lines"), [("dave", OF_DAVE), ("alice", OF_ALICE), ("mallory", OF_MALLORY)]
)
@pytest.mark.shows("shows who was throttled, for how long, by which quota")
def test_what_holds_a_client_back_is_told(
    name: str, lines: tuple[str, ...], filled: Path, command: Command
) -> None:
    output = " ".join(command("why", name, *in_options(f"warehouse.path={filled}")).out.split())
    assert [text for text in lines if text not in output] == []
