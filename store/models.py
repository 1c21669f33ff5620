"""Every table, for those who need the whole schema (migrations and their test)."""

from store.boots import Boot
from store.cards import Card
from store.events import Event
from store.heals import Heal, HealEdit, Verification
from store.jobs import Job
from store.projects import Project
from store.runs import Run
from store.sessions import Conversation, Message
from store.settings import StoredSetting
from store.types import Base

__all__ = [
    "Base",
    "Boot",
    "Card",
    "Conversation",
    "Event",
    "Heal",
    "HealEdit",
    "Job",
    "Message",
    "Project",
    "Run",
    "StoredSetting",
    "Verification",
]
