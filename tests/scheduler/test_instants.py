"""Single instants as a person types them, and the zone of the machine."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.instants import parse_instant
from scheduler.zones import local_timezone
from store.errors import Invalid

pytestmark = pytest.mark.mission("L2")
NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)  # 09:00 in Berlin


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-12-01T09:30", "2026-12-01T08:30"),
        ("2026-12-01 09:30:15", "2026-12-01T08:30:15"),
        ("2026-12-01T09:30Z", "2026-12-01T09:30"),
        ("2026-12-01 09:30+05:30", "2026-12-01T04:00"),
        ("2026-12-24", "2026-12-23T23:00"),
        ("20261224T180000", "2026-12-24T17:00"),
        ("tomorrow 09:00", "2026-12-02T08:00"),
        ("Tomorrow at 9 am", "2026-12-02T08:00"),
        ("today at 18:00", "2026-12-01T17:00"),
        ("18:15", "2026-12-01T17:15"),
        ("09:00", "2026-12-02T08:00"),
        ("08:59", "2026-12-02T07:59"),
        ("9:01 am", "2026-12-01T08:01"),
        ("in 10 minutes", "2026-12-01T08:10"),
        ("in 30s", "2026-12-01T08:00:30"),
        ("in 2 h", "2026-12-01T10:00"),
        ("in 1 day", "2026-12-02T08:00"),
        ("2027-03-28 02:30", "2027-03-28T01:00"),  # skipped: the first instant after the jump
        ("2026-10-25 02:30", "2026-10-25T00:30"),  # twice: the first time
    ],
)
def test_a_time_in_a_persons_words_is_an_instant_in_utc(text: str, instant: str) -> None:
    found = parse_instant(text, "Europe/Berlin", NOW)

    assert found == datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-02-30", "2026-02-30 does not exist"),
        ("2026-02-30 10:00", "2026-02-30 does not exist"),
        ("2026-13-01T10:00", "2026-13-01 does not exist"),
        ("2027-02-29T10:00Z", "2027-02-29 does not exist"),
        ("25:00", "“25:00” is not a time; write 2026-12-01 09:30"),
        ("2026-12-01T25:00", "is not a time"),
        ("9", "“9” is not a time"),
        ("tomorrow", "write tomorrow 09:00"),
        ("tomorrow 25:00", "write tomorrow 09:00"),
        ("yesterday", "“yesterday” is not a time"),
        ("in 5 fortnights", "is not a time"),
        ("in 999999999 weeks", "beyond the years"),
        ("0001-01-01T00:00+14:00", "beyond the years"),
        ("", "There is no time in ''"),
        ("18:15\n", "There is no time in '18:15\\n'"),
        ("18:15\x00", "There is no time in '18:15\\x00'"),
    ],
)
def test_what_is_no_instant_is_refused_in_the_callers_field(text: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_instant(text, "Europe/Berlin", NOW, field="from")

    assert refused.value.field == "from"
    assert says in refused.value.message


def test_a_time_before_the_first_year_is_refused_not_raised() -> None:
    with pytest.raises(Invalid) as refused:
        parse_instant("0001-01-01T00:00", "Asia/Tokyo", NOW)

    assert refused.value.field == "at"


@pytest.mark.parametrize("written", ["Asia/Tokyo", ":Asia/Tokyo"])
def test_the_machines_zone_is_the_name_in_tz(written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", written)

    assert local_timezone(tmp_path) == "Asia/Tokyo"


@pytest.mark.parametrize("target", ["/usr/share/zoneinfo/Europe/Paris", "../usr/share/zoneinfo/Europe/Paris"])
def test_a_rule_in_tz_is_no_name_so_the_localtime_link_decides(
    target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST")
    (tmp_path / "localtime").symlink_to(target)
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")

    assert local_timezone(tmp_path) == "Europe/Paris"


def test_without_a_link_the_timezone_file_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    (tmp_path / "localtime").write_bytes(b"TZif2")
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")

    assert local_timezone(tmp_path) == "Asia/Tokyo"


def test_a_machine_that_says_nothing_is_on_utc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)

    assert local_timezone(tmp_path) == "UTC"
