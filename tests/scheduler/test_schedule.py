"""Schedules: what is understood, what is refused, when they fire."""

from datetime import UTC, datetime

import pytest

from scheduler.schedule import Schedule
from store.errors import Invalid


@pytest.mark.mission("L2")
@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("every 30m", "*/30 * * * *"),
        ("weekdays at 09:30", "30 9 * * 1-5"),
        ("every day at 9 am", "0 9 * * *"),
        ("fridays at 18:15", "15 18 * * 5"),
    ],
)
def test_a_phrase_is_stored_as_five_fields_and_keeps_its_words(text: str, cron: str) -> None:
    schedule = Schedule.parse(text, "Europe/Berlin")
    assert (schedule.cron, schedule.text) == (cron, text)


@pytest.mark.mission("L2")
@pytest.mark.parametrize("text", ["60 * * * *", "0 0 30 2 *", "every 45m", "", "daily after lunch"])
def test_a_line_that_cannot_fire_as_written_is_refused_by_field(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse(text, "UTC")
    assert refused.value.field == "schedule"


@pytest.mark.mission("L2")
def test_an_unknown_zone_is_refused_by_field() -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse("hourly", "Europe/Berlinn")
    assert refused.value.field == "timezone"


@pytest.mark.mission("L2")
def test_a_time_in_the_spring_gap_runs_once_at_the_first_instant_after_it() -> None:
    schedule = Schedule.parse("30 2 * * *", "America/New_York")
    assert schedule.next_after(datetime(2026, 3, 8, 6, tzinfo=UTC)) == datetime(2026, 3, 8, 7, tzinfo=UTC)
