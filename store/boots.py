"""Boots: each start of the app, so that a start knows whether the last one ended cleanly."""

from dataclasses import dataclass
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
    machine_boot_id: Mapped[str | None]
    tzdata: Mapped[str | None]
    local_zone: Mapped[str | None]


@dataclass(frozen=True)
class Begun:
    """A start of the app: its number, which only grows (the keeper's epoch)."""

    boot_id: int
    was_clean: bool
    """Whether the start before ended cleanly."""

    is_first_of_machine: bool
    """Whether the machine has been started since the app was last."""

    rules_before: tuple[str, str] | None
    """Zone data and machine's zone of the start before."""


def begin(session: Session, *, version: str, pid: int, machine_boot_id: str, tzdata: str, local_zone: str) -> Begun:
    last = session.scalar(select(Boot).order_by(Boot.id.desc()).limit(1))
    boot = Boot(version=version, pid=pid, machine_boot_id=machine_boot_id, tzdata=tzdata, local_zone=local_zone)
    session.add(boot)
    session.flush()
    before = last.machine_boot_id if last is not None else None
    return Begun(
        boot_id=boot.id,
        was_clean=last is None or last.ended_at is not None,
        is_first_of_machine=before is not None and before != machine_boot_id,
        rules_before=(last.tzdata, last.local_zone) if last and last.tzdata and last.local_zone else None,
    )


def end(session: Session, boot_id: int) -> None:
    boot = session.get_one(Boot, boot_id)
    boot.ended_at = now()
