"""Keeping the model key out of reach of other processes of the same person."""

import ctypes
import os
import sys
from collections.abc import Iterable

_PR_SET_DUMPABLE = 4


def hide_process() -> None:
    """No other process may read this one's memory or /proc entries, and no core dump is written (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def take_from_environment(names: Iterable[str]) -> dict[str, str]:
    """The variables, which are then gone: no child inherits them, and /proc/PID/environ shows blanks in their place."""
    taken = {name: os.environ[name] for name in names if name in os.environ}
    if sys.platform == "linux":
        _blank({name.encode() for name in taken})
    for name in taken:
        del os.environ[name]
    return taken


def _blank(names: set[bytes]) -> None:
    # The kernel shows the memory that the variables were passed in, whatever the process has unset since.
    entries = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    index = 0
    while (address := entries[index]) is not None:
        text = ctypes.string_at(address)
        name, equals, value = text.partition(b"=")
        if equals and name in names:
            ctypes.memset(address + len(name) + 1, 0, len(value))
        index += 1
