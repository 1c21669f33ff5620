"""Everyday words for a schedule: which are understood, and what is said about the others."""

import pytest

from scheduler.phrases import read_clock
from scheduler.schedule import Schedule
from store.errors import Invalid

pytestmark = pytest.mark.mission("L2")


@pytest.mark.parametrize(
    ("phrase", "cron"),
    [
        ("every minute", "* * * * *"),
        ("every 1m", "* * * * *"),
        ("every 30m", "*/30 * * * *"),
        ("30m", "*/30 * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("Every 5 Mins", "*/5 * * * *"),
        ("every 60 min", "0 * * * *"),
        ("every 120m", "0 */2 * * *"),
        ("every 2h", "0 */2 * * *"),
        ("every 1 hour", "0 * * * *"),
        ("every 24 hrs", "0 0 * * *"),
        ("hourly", "0 * * * *"),
        ("every hour", "0 * * * *"),
        ("daily", "0 9 * * *"),
        ("every day", "0 9 * * *"),
        ("daily at 9am", "0 9 * * *"),
        ("daily 12am", "0 0 * * *"),
        ("daily at 12 pm", "0 12 * * *"),
        ("daily at noon", "0 12 * * *"),
        ("every day at 9 am", "0 9 * * *"),
        ("every day 18:05", "5 18 * * *"),
        ("daily at 7", "0 7 * * *"),
        ("weekdays", "0 9 * * 1-5"),
        ("weekdays at 09:30", "30 9 * * 1-5"),
        ("every weekday at 8 pm", "0 20 * * 1-5"),
        ("weekends at 10:00", "0 10 * * 0,6"),
        ("weekly", "0 9 * * 1"),
        ("every week", "0 9 * * 1"),
        ("weekly monday at 8 am", "0 8 * * 1"),
        ("weekly on sun at 23:59", "59 23 * * 0"),
        ("every wednesday at 6:15 pm", "15 18 * * 3"),
        ("fridays at 18:15", "15 18 * * 5"),
        ("saturdays", "0 9 * * 6"),
        ("monthly", "0 9 1 * *"),
        ("monthly at 06:00", "0 6 1 * *"),
    ],
)
def test_a_phrase_is_stored_as_five_fields_and_keeps_its_words(phrase: str, cron: str) -> None:
    schedule = Schedule.parse(phrase, "Europe/Berlin")

    assert (schedule.cron, schedule.text) == (cron, phrase)


@pytest.mark.parametrize(
    ("phrase", "says"),
    [
        ("every 45m", "45 minutes does not divide an hour; use 30m or 1h"),
        ("every 7 minutes", "7 minutes does not divide an hour; use 6m or 10m"),
        ("every 7h", "7 hours does not divide a day; use 6h or 8h"),
        ("every 90m", "90 minutes does not divide a day in whole hours; use 1h or 2h"),
        ("every 0m", "the shortest is 1m"),
        ("every 25h", "25 hours is longer than a day; use 24h"),
        ("every 30s", "Seconds are not supported; the shortest interval is 1m"),
        ("every 2 days", "“every 2 days” cannot be said in five fields"),
        ("every 3 weeks", "“every 3 weeks” cannot be said in five fields"),
        ("daily at 25:00", "“25:00” is not a time of day; write 09:30"),
        ("daily after lunch", "“after lunch” is not a time of day"),
        ("fridays at 13 pm", "“13 pm” is not a time of day"),
        ("every 30 fortnights", "is not a schedule"),
        ("every ٣m", "is not a schedule"),
    ],
)
def test_a_phrase_that_five_fields_cannot_say_is_refused_with_what_can_be_said(phrase: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse(phrase, "Europe/Berlin")

    assert refused.value.field == "schedule"
    assert says in refused.value.message


@pytest.mark.parametrize("text", ["24:00", "9:5", "9:60", "13pm", "0am", "-1", "9:30:00", "", "٩"])
def test_what_is_no_time_of_day_is_not_taken_for_one(text: str) -> None:
    assert read_clock(text) is None
