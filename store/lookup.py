"""Finding one row by its id, the same way for every table."""

from typing import TypeVar

from sqlalchemy.orm import Session

from store.errors import NotFound
from store.types import Base

T = TypeVar("T", bound=Base)


def find(session: Session, table: type[T], what: str, identity: int) -> T:
    """The row; raises NotFound, which calls it `what`."""
    row = session.get(table, identity)
    if row is None:
        raise NotFound(what, identity)
    return row
