"""Folders of demo runs: which stay, and which go."""

from datetime import timedelta
from pathlib import Path

from quotaflow.demo import runs

from ..delta_tables import NOON


def run(home: Path, second: int) -> tuple[Path, bool]:
    """One run that finished, as `quotaflow demo` leaves it."""
    with runs.new_run(home, NOON + timedelta(seconds=second)) as folder:
        (folder / "warehouse").mkdir()
        is_published = runs.publish(home, folder / "warehouse")
    runs.remove_older(home, folder)
    return folder, is_published


def test_the_newest_run_stays_and_older_ones_go(tmp_path: Path) -> None:
    first, second = (run(tmp_path, at) for at in (1, 2))
    assert (first[1], second[1]) == (True, True)
    assert (tmp_path / "warehouse").resolve() == second[0] / "warehouse"
    assert [path.name for path in (tmp_path / "demo").iterdir()] == [second[0].name]


def test_a_run_beside_a_warehouse_of_the_user_s_own_keeps_its_tables(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    folder, is_published = run(tmp_path, 1)
    assert not is_published
    assert (folder / "warehouse").is_dir()


def test_nobody_else_reads_what_a_run_leaves(tmp_path: Path) -> None:
    folder, _ = run(tmp_path / "home", 1)
    made = (folder, *folder.parents[: len(folder.relative_to(tmp_path).parts) - 1])
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
