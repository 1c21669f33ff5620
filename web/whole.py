"""Whole numbers in queries and forms: whatever else stands there is no number, never an error."""

from store.lookup import MOST_NUMBER


def read_whole(text: str) -> int | None:
    """The number of plain digits that the database can hold; None for anything else."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MOST_NUMBER)):
        return None
    return min(int(text), MOST_NUMBER)
