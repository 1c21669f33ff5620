"""Finding one row by its id, the same way for every table."""

from typing import TypeVar

from sqlalchemy.orm import Session

from store.errors import NotFound
from store.types import Base

T = TypeVar("T", bound=Base)
MOST_NUMBER = 2**63 - 1


def find(session: Session, table: type[T], what: str, identity: int) -> T:
    """The row; raises NotFound, which calls it `what`."""
    # SQLite has no larger number; asking for one would be an error of another kind.
    row = session.get(table, identity) if abs(identity) <= MOST_NUMBER else None
    if row is None:
        raise NotFound(what, identity)
    return row
