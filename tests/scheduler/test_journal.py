"""The keeper's journal survives kill -9 at any byte, moves on when full, and refuses work without room."""

from pathlib import Path

import pytest

from scheduler.journal import Journal

pytestmark = pytest.mark.mission("B3")


def test_reopening_finds_the_merged_entries(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write([((1, 1), {"intent": 5}), ((2, 1), {"intent": 6})])
    journal.write([((1, 1), {"pid": 77})])
    journal.forget([(2, 1)])
    journal.close()

    reopened = Journal(tmp_path)

    assert reopened.entries == {(1, 1): {"intent": 5, "pid": 77}}
    reopened.close()


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write([((1, 1), {"intent": 5})])
    journal.close()
    with (tmp_path / "00000001.log").open("r+b") as file:
        content = file.read()
        file.seek(content.find(b"\0"))
        file.write(b'{"key":[1,1],"pid":7')

    reopened = Journal(tmp_path)

    assert reopened.entries == {(1, 1): {"intent": 5}}
    reopened.close()


def test_live_entries_move_to_the_spare_when_a_file_is_full(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=4096)
    journal.write([((1, 1), {"pid": 11})])
    for number in range(2, 500):
        journal.write([((number, 1), {"intent": number})])
        journal.forget([(number, 1)])
    journal.write([((1, 1), {"ended": 9})])
    journal.close()

    reopened = Journal(tmp_path, segment_bytes=4096)

    assert reopened.entries == {(1, 1): {"pid": 11, "ended": 9}}
    assert len(list(tmp_path.glob("*.log"))) == 2, "the written file and one spare"
    reopened.close()


def test_more_entries_than_a_file_holds_get_a_larger_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=4096)
    for number in range(500):
        journal.write([((number, 1), {"intent": number})])
    journal.close()

    reopened = Journal(tmp_path, segment_bytes=4096)

    assert len(reopened.entries) == 500
    reopened.close()


def test_a_move_that_was_cut_short_leaves_the_older_file_in_force(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write([((1, 1), {"pid": 11})])
    journal.close()
    with (tmp_path / "00000002.log").open("r+b") as spare:
        spare.write(b'{"key":[9,1],"pid":99}\n')

    reopened = Journal(tmp_path)

    assert reopened.entries == {(1, 1): {"pid": 11}}
    reopened.close()


def test_without_room_for_another_file_it_is_full_and_forgets_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=4096)
    (tmp_path / "00000003.log").mkdir()  # the next file cannot be made, as on a disk without room

    for number in range(200):
        journal.write([((number, 1), {"intent": number})])

    assert journal.is_full
    journal.close()
    (tmp_path / "00000003.log").rmdir()
    reopened = Journal(tmp_path)
    assert len(reopened.entries) == 200
    reopened.close()
