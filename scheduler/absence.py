"""One calm card after a long absence of the app or the machine: what was caught up, and what was not."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from scheduler.slots import LATE, Plan
from store import cards
from store.cards import NOTICE, Card
from store.clock import iso, parse_iso

TARGET = "absence"
LONG = timedelta(hours=1)
_MISSED = ("expired", "merged", "appClosed", "sleep")


def tell(session: Session, plans: Sequence[Plan], rows: Sequence[Mapping[str, Any]], at: datetime) -> None:
    """Opens the card when slots of more than an hour ago were missed; one that is open takes the numbers in."""
    late = [plan for plan in plans if at - plan.seen_next_run_at > LONG]
    if not late:
        return
    jobs_late = {plan.job_id for plan in late}
    missed = [row for row in rows if row["job_id"] in jobs_late and at - row["slot_at"] > LATE]
    caught_up = sum(row["triggered_by"] == "catch_up" and row["status"] != "skipped" for row in missed)
    left_out = sum(row["slots_covered"] for row in missed if row["skip_reason"] in _MISSED)
    expired = len({row["job_id"] for row in missed if row["skip_reason"] == "expired"})
    if not caught_up and not left_out:
        return  # all of them are paused: nothing was missed
    since = min(plan.seen_next_run_at for plan in late)
    known = session.scalar(
        select(Card).where(Card.action_kind == NOTICE, Card.target == TARGET, Card.status == "pending")
    )
    before = known.payload if known is not None else {}
    facts = {
        "since": min(iso(since), str(before.get("since", iso(since)))),
        "until": iso(at),
        "caughtUp": caught_up + int(before.get("caughtUp", 0)),
        "leftOut": left_out + int(before.get("leftOut", 0)),
        "expired": expired + int(before.get("expired", 0)),
    }
    if known is None:
        known = Card(action_kind=NOTICE, target=TARGET, title="", preview="", payload=facts)
        known.title, known.preview = _words(facts)
        cards.post(session, known)
    else:
        known.payload = facts
        known.title, known.preview = _words(facts)


def _words(facts: Mapping[str, Any]) -> tuple[str, str]:
    away = parse_iso(facts["until"]) - parse_iso(facts["since"])
    hours = round(away.total_seconds() / 3_600)
    long = f"{round(hours / 24)} days" if hours >= 48 else f"{hours} hours" if hours > 1 else "an hour"
    said = [
        _counted(facts["caughtUp"], "run catches up now", "runs catch up now"),
        _counted(facts["leftOut"], "missed slot was left out", "missed slots were left out"),
        _counted(facts["expired"], "job waited too long to be caught up", "jobs waited too long to be caught up"),
    ]
    return f"Jobs were due while Cronmend was away for {long}", "; ".join(filter(None, said)) + "."


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""
