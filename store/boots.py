"""Boots: each start of the app, so that a start knows whether the last one ended cleanly."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Mapped, Session, mapped_column

from store.clock import now
from store.types import AUTOINCREMENT, Base


class Boot(Base):
    __tablename__ = "boots"
    __table_args__ = AUTOINCREMENT

    id: Mapped[int] = mapped_column(primary_key=True)
    started_at: Mapped[datetime] = mapped_column(default=now)
    ended_at: Mapped[datetime | None]
    version: Mapped[str]
    pid: Mapped[int]


def begin(session: Session, *, version: str, pid: int) -> tuple[int, bool]:
    """A new boot: its number, which only grows (the keeper's epoch), and whether the one before ended cleanly."""
    last = session.scalar(select(Boot).order_by(Boot.id.desc()).limit(1))
    boot = Boot(version=version, pid=pid)
    session.add(boot)
    session.flush()
    return boot.id, last is None or last.ended_at is not None


def end(session: Session, boot_id: int) -> None:
    boot = session.get_one(Boot, boot_id)
    boot.ended_at = now()
