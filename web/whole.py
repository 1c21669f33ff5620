"""Whole numbers in queries and forms: whatever else stands there is no number."""

from store.lookup import MOST_NUMBER


def read_whole(text: str) -> int | None:
    """The number of plain digits, at most what the database can hold; None for anything else.  Never raises."""
    if not (text.isascii() and text.isdigit()):
        return None
    return min(int(text), MOST_NUMBER) if len(text) <= len(str(MOST_NUMBER)) else MOST_NUMBER
