"""Schedules: what is understood, what is refused, what they say of themselves."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.schedule import Schedule
from store.errors import Invalid

pytestmark = pytest.mark.mission("L2")
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "cron"),
    [
        ("*/5 * * * *", "*/5 * * * *"),
        ("  05   09 * *\tMON-FRI ", "5 9 * * 1-5"),
        ("0 0 1 jan,JUL *", "0 0 1 1,7 *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * sun", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 5-7"),
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("*/1 */1 * * *", "* * * * *"),
        ("10-10/5 23/5 * * *", "10 23 * * *"),
        ("0 8-18/2 * * *", "0 8-18/2 * * *"),
        ("0,0,30 * * * *", "0,30 * * * *"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 9 1,lw * *", "0 9 1,LW * *"),
        ("0 9 * * fril", "0 9 * * 5L"),
        ("0 9 * * mon#1,7#3", "0 9 * * 1#1,0#3"),
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
        ("@reboot", "@reboot"),
        ("0 0 29 2 *", "0 0 29 2 *"),
    ],
)
def test_a_cron_line_is_stored_normalized_and_reads_the_same_again(line: str, cron: str) -> None:
    schedule = Schedule.parse(line, "UTC")

    assert schedule.cron == cron
    assert Schedule.parse(schedule.cron, "UTC").cron == cron
    assert Schedule.parse(schedule.text, "UTC") == schedule


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("60 * * * *", "minute 60 is outside 0-59"),
        ("0 24 * * *", "hour 24 is outside 0-23"),
        ("0 0 0 * *", "day of month 0 is outside 1-31"),
        ("0 0 * 13 *", "month 13 is outside 1-12"),
        ("0 0 * * 8", "day of week 8 is outside 0-7"),
        ("0 0 * foo *", "month: “foo” is not a value; use 1-12 or jan-dec"),
        ("0 0 * * monday", "day of week: “monday” is not a value; use 0-7 or sun-sat"),
        ("0 0 30 2 *", "day of month 30 does not come in month 2: it never fires"),
        ("0 0 31 4,6 *", "day of month 31 does not come in month 4,6: it never fires"),
        ("*/90 * * * *", "minute: */90 is hourly"),
        ("*/60 * * * *", "minute: */60 is hourly"),
        ("0 */24 * * *", "hour: */24 is daily"),
        ("0 0 */40 * *", "day of month: */40 is only the first value"),
        ("*/0 * * * *", "minute: a step of 0 never moves; use 1 or more"),
        ("*/x * * * *", "minute: the step of “*/x” is not a number"),
        ("0 22-2 * * *", "hour: 22-2 runs backwards; write 22-23,0-2"),
        ("0 9 * * fri-mon", "day of week: fri-mon runs backwards; write 5-6,0-1"),
        ("0 9 * * sat-sun", "day of week: sat-sun runs backwards; write 6-7"),
        ("0 9 * nov-jan *", "month: nov-jan runs backwards; write 11-12,1"),
        ("1,,2 * * * *", "minute: a list has an empty place"),
        ("*-5 * * * *", "minute: “*-5” mixes * with a range"),
        ("a-b-c * * * *", "minute: “a-b-c” is not a value, a range"),
        ("²5 * * * *", "minute: “²5” is not a value"),
        ("0 9 * * mon, fri", "has a space in a list"),
        ("0 9 15W * *", "day of month: W (the nearest weekday) is not supported; use LW"),
        ("0 9 L-3 * *", "day of month: L here is not supported"),
        ("0 9 * L *", "month: L here is not supported"),
        ("0 9 L/2 * *", "day of month: L here is not supported"),
        ("0 9 5L * *", "day of month: L here is not supported"),
        ("0 9 ? * 1", "day of month: ? is not supported; write *"),
        ("H * * * *", "minute: H is not supported"),
        ("0~30 * * * *", "minute: ~ (random) is not supported"),
        ("0 9 * * 5#6", "day of week: “5#6” asks for week 6 of a month; use #1 to #5"),
        ("*/15 * * * * *", "seconds are not supported; use five fields"),
        ("0 0 12 * * MON-FRI", "seconds are not supported; use five fields"),
        ("0 9 * * 1-5 /opt/backup", "“/opt/backup” is the sixth word"),
        ("0 9 * *", "has 4 fields instead of five"),
        ("CRON_TZ=Europe/Berlin 0 9 * * *", "use --timezone Europe/Berlin"),
        ("TZ=UTC 0 9 * * *", "use --timezone UTC"),
        ("@fortnightly", "@fortnightly is not known; use one of @hourly"),
        ("blue moon", "“blue moon” is not a schedule; write five fields"),
        ("every blue moon at nine", "is not a schedule; write five fields"),
        ("", "is empty"),
        (" \t ", "is empty"),
        ("0 9 * * *\n0 10 * * *", "line break"),
        ("0 9 * * *\x00", "control character"),
        ("1," * 900 + "1 * * * *", "longer than 1000 characters"),
    ],
)
def test_a_line_that_cannot_fire_as_written_is_refused_with_cause_and_remedy(line: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse(line, "UTC")

    assert refused.value.field == "schedule"
    assert says in refused.value.message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("every 30m", "Every 30 minutes"),
        ("weekdays at 09:30", "At 09:30, Monday through Friday"),
        ("0 0 * * 7", "At 00:00, only on Sunday"),
        ("*/45 * * * *", "At 0 and 45 minutes past the hour"),
        ("0 9 13 * 5", "At 09:00, on day 13 of the month, or on Friday"),
        ("0 9 */2 * 1", "At 09:00, every 2 days, and only on Monday"),
        ("0 9 29 2 1", "At 09:00, on day 29 of the month, or on Monday, only in February"),
        ("0 9 1,LW * *", "At 09:00, on day 1 and the last weekday of the month"),
        ("0 9 * * 1,5#2", "At 09:00, on Monday or on the second Friday of the month"),
        ("0 9 1 * 5L", "At 09:00, on day 1 of the month, or on the last Friday of the month"),
        ("0 9 * * */2", "At 09:00, only on Sunday, Tuesday, Thursday, and Saturday"),
        ("@reboot", "Once after each start of the machine"),
    ],
)
def test_a_schedule_says_in_english_when_it_runs(line: str, words: str) -> None:
    assert Schedule.parse(line, "UTC").words == words


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("*/45 * * * *", "minute: */45 is uneven"),
        ("0 */5 * * *", "hour: */5 is uneven"),
        ("0 0 * */5 *", "month: */5 is uneven"),
        ("0 0 */2 * *", "day of month: */2 is uneven"),
        ("0 9 13 * 5", "Runs when either day field matches: day of month 13 or day of week 5."),
        ("0 9 */2 * 1", "Runs only when day of month */2 and day of week 1 both match."),
        ("0 9 1-31 * 1", "1-31 matches every day"),
        ("0 9 31 * *", "months without day 31 are left out; L is the last day"),
        ("0 9 29 * *", "months without day 29 are left out"),
        ("0 9 30,31 4,5 *", "months without day 31 are left out"),
        ("0 9 29 2 *", "leap years only"),
    ],
)
def test_a_surprising_line_carries_a_note(line: str, says: str) -> None:
    assert says in " ".join(Schedule.parse(line, "UTC").notes)


@pytest.mark.parametrize(
    "line", ["*/15 * * * *", "0 */6 * * *", "0 9 28 * *", "0 9 31 1,3 *", "0 9 * * 1-5", "0 9 L * *", "@reboot"]
)
def test_a_plain_line_carries_no_note(line: str) -> None:
    assert Schedule.parse(line, "UTC").notes == ()


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berlinn", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("CEST", "use a name like Europe/Berlin or UTC"),
        ("GMT+2", "use a name like Europe/Berlin or UTC"),
        ("../etc/passwd", "use a name like Europe/Berlin or UTC"),
        ("/etc/localtime", "use a name like Europe/Berlin or UTC"),
        ("UTC\x00", "use a name like Europe/Berlin or UTC"),
        ("", "use a name like Europe/Berlin or UTC"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(zone: str, near: str) -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse("hourly", zone)

    assert refused.value.field == "timezone"
    assert near in refused.value.message


def test_a_stored_schedule_whose_zone_has_gone_is_refused_by_field_when_it_is_asked() -> None:
    schedule = Schedule("0 9 * * *", "daily", "Mars/Olympus")

    with pytest.raises(Invalid) as refused:
        schedule.next_after(NOON)

    assert refused.value.field == "timezone"


def test_a_preview_shows_the_local_time_with_its_zone() -> None:
    schedule = Schedule.parse("weekdays at 09:30", "Europe/Berlin")

    shown = schedule.upcoming(datetime(2026, 3, 27, 12, tzinfo=UTC), 2)

    assert [(f"{each.at:%d %H:%M}", each.local, each.note) for each in shown] == [
        ("30 07:30", "Mon 2026-03-30 09:30 CEST", None),
        ("31 07:30", "Tue 2026-03-31 09:30 CEST", None),
    ]


def test_a_leap_day_is_found_years_ahead() -> None:
    schedule = Schedule.parse("0 0 29 2 *", "UTC")

    assert [each.at.year for each in schedule.upcoming(NOON, 3)] == [2028, 2032, 2036]


def test_a_start_up_schedule_has_no_instants_and_no_period() -> None:
    schedule = Schedule.parse("@reboot", "Europe/Berlin")

    assert schedule.next_after(NOON) is None
    assert schedule.upcoming(NOON, 3) == []
    assert list(schedule.between(NOON, NOON + timedelta(days=9))) == []
    assert schedule.period(NOON) == timedelta.max


@pytest.mark.parametrize(
    ("line", "period"),
    [
        ("every 30m", timedelta(minutes=30)),
        ("daily", timedelta(days=1)),
        ("fridays", timedelta(days=7)),
        ("0 9 13 * *", timedelta(days=31)),
    ],
)
def test_the_period_is_the_gap_between_the_two_next_runs(line: str, period: timedelta) -> None:
    assert Schedule.parse(line, "UTC").period(NOON) == period


def test_between_leaves_out_its_start_and_includes_its_end() -> None:
    schedule = Schedule.parse("hourly", "UTC")

    found = list(schedule.between(NOON, NOON + timedelta(hours=2)))

    assert found == [NOON + timedelta(hours=1), NOON + timedelta(hours=2)]


def test_the_calendar_ends_without_an_error() -> None:
    schedule = Schedule.parse("0 0 * * *", "Asia/Kolkata")

    assert len(schedule.upcoming(datetime(9999, 12, 29, tzinfo=UTC), 10)) < 10
