"""Making and editing jobs: what is refused names its field and leaves nothing behind."""

from pathlib import Path
from typing import Any

import make
import pytest

from scheduler import jobs as use
from store import jobs
from store.database import Database
from store.errors import Conflict, Invalid


@pytest.mark.mission("L1")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"schedule": "0 0 30 2 *"}, "schedule"),
        ({"schedule": "60 * * * *"}, "schedule"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"project": "/no/such/folder"}, "project"),
        ({"cwd": "/no/such/folder"}, "cwd"),
        ({"name": "   "}, "name"),
        ({"command": "x" * 200_000}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"retries": -1}, "retries"),
        ({"overlap": "sometimes"}, "overlap"),
        ({"env": {"CRONMEND_RUN_ID": "1"}}, "env"),
        ({"colour": "red"}, "colour"),
        ({"prompt": "and a prompt"}, "prompt"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_stored(database: Database, body: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        make.job(database, **body)
    assert refused.value.field == field
    with database.read() as session:
        assert jobs.listing(session) == []


@pytest.mark.mission("L1")
def test_a_folder_of_a_new_job_becomes_a_project(database: Database, tmp_path: Path) -> None:
    job = make.job(database, project=str(tmp_path))
    again = make.job(database, project=str(tmp_path))
    assert job.project_id is not None
    assert job.project_id == again.project_id


@pytest.mark.mission("L1")
@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"prompt": "now a prompt"}, "prompt"),
        ({"recipe": "r.yaml"}, "recipe"),
        ({"targetType": "session"}, "targetType"),
    ],
)
def test_the_target_type_of_a_job_never_changes(database: Database, patch: dict[str, Any], field: str) -> None:
    job = make.job(database)
    with pytest.raises(Invalid, match="never changes") as refused:
        database.write(lambda session: use.edit(session, job.id, patch))
    assert refused.value.field == field


@pytest.mark.mission("L1")
def test_an_edit_that_is_refused_leaves_the_job_as_it_was(database: Database) -> None:
    job = make.job(database)
    with pytest.raises(Invalid):
        database.write(lambda session: use.edit(session, job.id, {"name": "renamed", "timezone": "Mars/Olympus"}))
    with database.read() as session:
        assert jobs.get(session, job.id).name == "nightly"


@pytest.mark.mission("L1")
def test_an_edit_without_a_time_keeps_the_next_slot(database: Database) -> None:
    job = make.job(database)
    edited = database.write(lambda session: use.edit(session, job.id, {"name": "renamed"}))
    assert (edited.name, edited.next_run_at) == ("renamed", job.next_run_at)


@pytest.mark.mission("L1")
def test_resuming_lifts_the_persons_pause_and_not_a_heals(database: Database) -> None:
    job = make.job(database, columns={"paused_heal_id": 7})
    database.write(lambda session: use.pause(session, job.id))
    resumed = database.write(lambda session: use.resume(session, job.id))
    assert resumed.paused_by == "heal 7"


@pytest.mark.mission("L1")
def test_a_job_that_a_heal_works_on_is_not_removed(database: Database) -> None:
    job = make.job(database, columns={"paused_heal_id": 7})
    with pytest.raises(Conflict, match="Heal 7"):
        database.write(lambda session: use.remove(session, job.id))
