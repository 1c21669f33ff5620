"""Sentences read as jobs: command, time, folder, name, and what the words do not say."""

from datetime import UTC, datetime

import pytest

from scheduler.schedule import Schedule
from scheduler.sentences import NO_COMMAND, NO_DAY, NO_TIME, read_sentence

pytestmark = pytest.mark.mission("O15")

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)

READ = {
    "Run `python3 report.py` every weekday at 9am in ~/reports.": (
        {"command": "python3 report.py", "schedule": "every weekday at 9am", "project": "~/reports"},
        (),
    ),
    "run ./backup.sh nightly": ({"command": "./backup.sh", "schedule": "daily at 3am"}, ()),
    "Every five minutes, run curl -f http://x/health": (
        {"command": "curl -f http://x/health", "schedule": "every 5 minutes"},
        (),
    ),
    "at 6pm every day run tidy.sh": ({"command": "tidy.sh", "schedule": "every day at 6pm"}, ()),
    "please run tidy.py every monday and friday at 9:30": (
        {"command": "tidy.py", "schedule": "every monday and friday at 9:30"},
        (),
    ),
    "run sync.sh 0 */6 * * *": ({"command": "sync.sh", "schedule": "0 */6 * * *"}, ()),
    "in 10 minutes run make clean in /srv/app.": (
        {"command": "make clean", "runAt": "in 10 minutes", "project": "/srv/app"},
        (),
    ),
    "on 2027-01-31 06:00 run renew": ({"command": "renew", "runAt": "2027-01-31 06:00"}, ()),
    "tomorrow at 9 run `echo hi`": ({"command": "echo hi", "runAt": "tomorrow at 9"}, ()),
    "Back up my documents every night at 2am": (
        {"name": "Back up my documents", "schedule": "daily at 2am"},
        (NO_COMMAND,),
    ),
    "Check the disk twice a day": ({"name": "Check the disk", "schedule": "every 12h"}, (NO_COMMAND,)),
    "run the weekly report": ({"name": "Run the report", "schedule": "weekly"}, (NO_COMMAND,)),
    "at 3 pm run tidy": ({"command": "tidy", "schedule": "daily at 3 pm"}, (NO_DAY,)),
    "`ls`": ({"command": "ls"}, (NO_TIME,)),
    "": ({}, (NO_COMMAND, NO_TIME)),
}


@pytest.mark.parametrize("said", READ)
def test_a_sentence_says(said: str) -> None:
    fields, notes = READ[said]

    reading = read_sentence(said, "Europe/Berlin", AT)

    assert {name: value for name, value in reading.fields.items() if name in fields or name != "name"} == fields
    assert reading.notes == notes


@pytest.mark.parametrize("said", [said for said in READ if "schedule" in READ[said][0]])
def test_what_it_calls_a_schedule_is_one(said: str) -> None:
    assert Schedule.parse(read_sentence(said, "UTC", AT).fields["schedule"], "UTC").cron


def test_an_interval_that_cannot_be_kept_is_shown_not_rounded() -> None:
    assert read_sentence("Every 7 minutes run a.sh", "UTC", AT).fields["schedule"] == "every 7 minutes"


@pytest.mark.parametrize(
    ("phrase", "cron"),
    [
        ("every monday and friday at 9", "0 9 * * 1,5"),
        ("mondays, wednesdays and fridays at 9:30 pm", "30 21 * * 1,3,5"),
        ("every sun, and sat", "0 9 * * 0,6"),
    ],
)
@pytest.mark.mission("L2")
def test_several_days_are_one_schedule(phrase: str, cron: str) -> None:
    assert Schedule.parse(phrase, "UTC").cron == cron


def test_a_hostile_sentence_is_read_in_no_time() -> None:
    read_sentence("every " * 400 + "at 9 " * 400 + "`" * 400, "UTC", AT)
