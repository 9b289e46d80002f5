"""`quotaflow why` about clients of the real cluster, one of them throttled by its quota."""

from pathlib import Path

import pytest

from quotaflow.pipelines.areas.verdict import MAX_LINES

from ..command_line import Command, in_options

OF_DAVE = (
    "User:dave as rdk-exports-dave: producer_byte_rate most likely throttled ",
    "producer_byte_rate of user dave is ",
    "--entity-type users --entity-name dave --add-config producer_byte_rate=",
)
OF_ALICE = ("No client quota limits alice.",)
OF_MALLORY = (
    "User:mallory took new producer ids, up to ",
    "brokers do not enforce it (KIP-936)",
    " new producer ids: the program makes new producers, each for at most three PRODUCE requests. ",
    "next: keep one producer, and close it when the program ends",
    "No client quota limits mallory.",
)


@pytest.mark.parametrize(
    ("name", "lines"), [("dave", OF_DAVE), ("alice", OF_ALICE), ("mallory", OF_MALLORY)]
)
@pytest.mark.shows("shows who was throttled, for how long, by which quota")
def test_what_holds_a_client_back_is_told(
    name: str, lines: tuple[str, ...], filled: Path, command: Command
) -> None:
    options = in_options(f"warehouse.path={filled}")
    output = " ".join(command("why", name, "--all", *options).out.split())
    assert [text for text in lines if text not in output] == []


@pytest.mark.shows("says in one sentence who is slow, and which quota takes the time")
def test_the_verdict_comes_first(filled: Path, command: Command) -> None:
    output = command("why", "dave", *in_options(f"warehouse.path={filled}")).out
    words = " ".join(output.replace("\\\n", "").split())
    assert words.startswith("rdk-exports-dave is slow: PRODUCE waits ")
    assert " of it for a quota." in words
    assert "of user dave, set by User:admin at " in words
    assert "--entity-type users --entity-name dave --add-config producer_byte_rate=" in words
    assert len(output.splitlines()) <= MAX_LINES
