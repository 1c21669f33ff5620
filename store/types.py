"""Column types and the base class of every table."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Dialect, MetaData, String, TypeDecorator
from sqlalchemy.orm import DeclarativeBase

from store.clock import iso, parse_iso


class UtcDateTime(TypeDecorator[datetime]):
    """An aware instant, kept as ISO 8601 text in UTC with milliseconds: it sorts as it reads."""

    impl = String(24)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime has no place in the database")
        return iso(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else parse_iso(value)


class Base(DeclarativeBase):
    """All tables; constraint names are fixed so that migrations can name them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - read once by SQLAlchemy
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        dict[str, str]: JSON(none_as_null=True),
        list[str]: JSON(none_as_null=True),
        list[int]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


AUTOINCREMENT: dict[str, Any] = {"sqlite_autoincrement": True}
"""Ids name log folders, undo copies and web addresses: one that was deleted is never given again."""
