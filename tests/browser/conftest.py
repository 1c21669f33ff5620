"""The fixtures of the browser tests."""

from support.browsing import chromium, running, seat

__all__ = ["chromium", "running", "seat"]
