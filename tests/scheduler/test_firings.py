"""When schedules fire: against a slow oracle round every clock change, and as laws for any line and zone."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cron_oracle import fire_times

from scheduler.schedule import Schedule
from store.errors import Invalid

pytestmark = pytest.mark.mission("L2")

# Days shortly before a clock change of each zone; Kolkata has none.
WEEKS = [
    ("America/New_York", "2026-03-05"),
    ("America/New_York", "2026-10-29"),
    ("Europe/London", "2026-03-26"),
    ("Europe/London", "2026-10-22"),
    ("America/Santiago", "2026-04-01"),
    ("America/Santiago", "2026-09-02"),
    ("Australia/Lord_Howe", "2026-04-01"),
    ("Australia/Lord_Howe", "2026-10-01"),
    ("Africa/Cairo", "2026-04-21"),
    ("Africa/Cairo", "2026-10-27"),
    ("America/Nuuk", "2026-03-25"),
    ("Antarctica/Troll", "2026-10-22"),
    ("Asia/Kolkata", "2026-03-05"),
    ("Pacific/Apia", "2011-12-27"),
    ("Pacific/Apia", "2011-09-21"),
]
LINES = [
    "30 2 * * *",
    "0,30 2 * * *",
    "15 1-3 * * *",
    "0 0 * * *",
    "15 2 * * *",
    "30 1 * * *",
    "59 23 * * *",
    "0 2,3 * * *",
    "30 23,0 * * 0",
    "45 1 * * 0",
    "10 2-3 * * *",
    "5-59/15 1-2 * * *",
    "0 3 1-31 * 1",
    "30 2 */2 * 0",
    "0 1 L * 0#1",
    "20 1 * 3-12 1",
    "30 0 * * 5L",
    "*/30 * * * *",
    "0 * * * *",
    "*/45 * * * *",
    "*/30 1 * * *",
    "*/30 2 * * *",
    "*/15 3 * * *",
    "*/15 0 * * *",
    "*/20 2 * * 6,0",
    "0 */2 * * *",
    "7 */3 * * *",
]


@pytest.mark.parametrize(("zone", "start"), WEEKS)
def test_round_a_clock_change_a_line_fires_when_a_look_at_every_minute_says_so(zone: str, start: str) -> None:
    after = datetime.fromisoformat(start).replace(tzinfo=UTC)
    until = after + timedelta(days=7)

    fired = {line: list(Schedule.parse(line, zone).between(after, until)) for line in LINES}

    assert fired == {line: fire_times(Schedule.parse(line, zone).cron, zone, after, until) for line in LINES}


@pytest.mark.parametrize(("zone", "start"), WEEKS)
def test_asked_again_after_each_run_a_line_fires_at_the_same_instants(zone: str, start: str) -> None:
    after = datetime.fromisoformat(start).replace(tzinfo=UTC)
    until = after + timedelta(days=7)
    schedules = [Schedule.parse(line, zone) for line in LINES]

    chains = {schedule.cron: _chain(schedule, after, until) for schedule in schedules}

    assert chains == {schedule.cron: fire_times(schedule.cron, zone, after, until) for schedule in schedules}


def _chain(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    fired: list[datetime] = []
    at = schedule.next_after(after)
    while at is not None and at <= until:
        fired.append(at)
        at = schedule.next_after(at)
    return fired


@pytest.mark.parametrize(
    ("line", "zone", "after", "shown"),
    [
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            [("Sun 2026-03-08 03:00 EDT", "02:30 does not exist this night; runs at 03:00")],
        ),
        (
            "0,30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            [
                ("Sun 2026-03-08 03:00 EDT", "02:00 does not exist this night; runs at 03:00"),
                ("Mon 2026-03-09 02:00 EDT", None),
            ],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            [
                ("Sun 2026-11-01 01:30 EDT", "this hour happens twice; runs the first time"),
                ("Mon 2026-11-02 01:30 EST", None),
            ],
        ),
        (
            "*/30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            [
                ("Sun 2026-11-01 01:00 EDT", "this hour happens twice; runs both times"),
                ("Sun 2026-11-01 01:30 EDT", "this hour happens twice; runs both times"),
                ("Sun 2026-11-01 01:00 EST", "this hour happens twice; this is the second time"),
                ("Sun 2026-11-01 01:30 EST", "this hour happens twice; this is the second time"),
                ("Mon 2026-11-02 01:00 EST", None),
            ],
        ),
        (
            "*/30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            [("Mon 2026-03-09 02:00 EDT", "02:00 on 2026-03-08 does not exist and is left out")],
        ),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T20:00",
            [
                (
                    "Sat 2011-12-31 00:00 +14",
                    "09:00 on 2011-12-30 does not exist; runs at 00:00 on 2011-12-31",
                )
            ],
        ),
        (
            "0 0 * * *",
            "America/Santiago",
            "2026-09-05T12:00",
            [("Sun 2026-09-06 01:00 -03", "00:00 does not exist this night; runs at 01:00")],
        ),
    ],
)
def test_the_preview_says_what_an_odd_night_does(
    line: str, zone: str, after: str, shown: list[tuple[str, str | None]]
) -> None:
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)

    upcoming = Schedule.parse(line, zone).upcoming(start, len(shown))

    assert [(each.local, each.note) for each in upcoming] == shown


def test_a_yearly_schedule_in_the_repeated_hour_keeps_its_order() -> None:
    schedule = Schedule.parse("*/30 1 * 11 0#1", "America/New_York")

    upcoming = schedule.upcoming(datetime(2026, 1, 1, tzinfo=UTC), 6)

    assert [f"{each.at:%Y-%m-%d %H:%M}" for each in upcoming] == [
        "2026-11-01 05:00",
        "2026-11-01 05:30",
        "2026-11-01 06:00",
        "2026-11-01 06:30",
        "2027-11-07 05:00",
        "2027-11-07 05:30",
    ]


def _fields(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    span = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.builds(lambda base, size: f"{base}/{size}", st.one_of(st.just("*"), span), st.integers(1, high - low))
    term = st.one_of(value.map(str), span, step)
    return st.one_of(st.just("*"), term, st.lists(term, min_size=2, max_size=3).map(",".join))


DAYS = st.one_of(_fields(1, 31), st.sampled_from(["L", "LW", "13,L"]))
WEEKDAYS = st.one_of(_fields(0, 7), st.sampled_from(["5L", "1#1", "0#5", "1#2,3L"]))
CRON = st.tuples(_fields(0, 59), _fields(0, 23), DAYS, _fields(1, 12), WEEKDAYS).map(" ".join)
ZONES = st.sampled_from(sorted({zone for zone, _ in WEEKS} | {"UTC", "America/St_Johns", "Asia/Beirut"}))
# Whole seconds, so that instants between two minutes are asked about too.
INSTANTS = st.one_of(
    st.datetimes(datetime(2011, 1, 1), datetime(2040, 1, 1)),  # noqa: DTZ001 - made aware below
    st.sampled_from(WEEKS).flatmap(
        lambda week: st.integers(0, 5 * 86400).map(
            lambda seconds: datetime.fromisoformat(week[1]) + timedelta(seconds=seconds)
        )
    ),
).map(lambda naive: naive.replace(tzinfo=UTC))


@settings(max_examples=300, deadline=None, database=None)
@given(CRON, ZONES, INSTANTS)
def test_preview_and_firing_are_one_and_time_only_moves_on(line: str, zone: str, after: datetime) -> None:
    try:
        schedule = Schedule.parse(line, zone)
    except Invalid as refused:
        assert "never fires" in refused.message  # noqa: PT017 - the only refusal a line of this shape may meet
        return

    shown = [each.at for each in schedule.upcoming(after, 6)]

    fired: list[datetime] = []
    last = after
    while len(fired) < 6 and (at := schedule.next_after(last)) is not None:
        fired.append(at)
        last = at
    assert shown == fired
    assert all(earlier < later for earlier, later in pairwise([after, *fired]))
    assert list(schedule.between(after, last)) == fired
