"""What keeps the disk from taking what is written, in words for the person who can mend it."""

import errno
import sqlite3

from store.errors import Refusal

_FULL = "The disk is full: nothing can be recorded, and no job starts. Make room."
_READ_ONLY = "The data directory cannot be written: no job starts. Make it writable again."
_FAILING = "The disk does not take what is written: no job starts. Look at the disk, then restart."
_DAMAGED = "The database is damaged: no job starts. Restart Cronmend: it puts the newest backup back."

_BY_DATABASE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_IOERR: _FAILING,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "Another program holds the database: nothing can be recorded until it lets go.",
}
_FULL_BY_SYSTEM = (errno.ENOSPC, errno.EDQUOT)
_CLOSED_BY_SYSTEM = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_PRIMARY = 0xFF
"""The part of SQLite's extended result code that names the family."""


class Unwritable(Refusal):
    """A change that the disk did not take; it has not been made."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unwritable")


def trouble_of(error: BaseException) -> str | None:
    """The words for an error of the database or of a file, None when the storage is not to blame."""
    cause = getattr(error, "orig", error)  # what SQLAlchemy wraps
    if isinstance(cause, OSError):
        return _trouble_with_file(cause)
    code = getattr(cause, "sqlite_errorcode", None)
    return None if code is None else _BY_DATABASE.get(code & _PRIMARY)


def _trouble_with_file(error: OSError) -> str | None:
    if error.errno in _FULL_BY_SYSTEM:
        return _FULL
    if error.errno in _CLOSED_BY_SYSTEM and error.filename is not None:
        return f"{error.filename} cannot be used ({error.strerror})."
    return None


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, and not only out of reach at present."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & _PRIMARY in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
