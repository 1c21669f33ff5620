"""What a tool of a session is, whoever runs it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ToolError(Exception):
    """A tool that could not do what was asked.  The model reads the message, so it holds nothing secret."""


@dataclass(frozen=True)
class Tool:
    """One tool: `call` takes the input that the schema describes and gives the text for the model.

    `call` raises ToolError for a refusal or a failure that the model should read.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[str]]


@dataclass(frozen=True)
class Workspace:
    """The one folder a session may touch.

    `.git`, virtual environments and node_modules in it may be read and never changed; `forbidden` may not even be
    read (the data directory, when the project contains it).  All paths are absolute and real.
    `secrets` are values that no text for the model may contain.
    """

    project: Path
    forbidden: tuple[Path, ...] = ()
    secrets: tuple[str, ...] = ()
