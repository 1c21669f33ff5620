"""The file tools of a session, by the names and schemas of the SDK's own agent toolset, confined to the project."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from agent.confinement import Content, read_file, refuse_sealed, relative_to_project, write_file
from agent.search import find_lines, find_names
from agent.tools import Tool, ToolError, Workspace
from store.redaction import MARK, redact

MOST_CHARS = 50_000

_TEXT = {"type": "string"}


@dataclass(frozen=True)
class _Shape:
    """What the model is told about a tool."""

    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    is_search: bool = False

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def check(self, given: dict[str, Any]) -> None:
        """Raises ToolError for input that the schema does not allow."""
        for field in self.required:
            if field not in given:
                raise ToolError(f"{field} is missing.")
        for field, value in given.items():
            kind = self.properties.get(field, {}).get("type")
            if kind == "string" and not (isinstance(value, str) or (value is None and field not in self.required)):
                raise ToolError(f"{field} must be text.")


_READ = _Shape(
    "read",
    "Read a text file of the project. view_range [first, last] gives those lines only, 1-indexed and inclusive; "
    "a last line of 0 or less means the end of the file.",
    {"file_path": _TEXT, "view_range": {"type": "array", "items": {"type": "integer"}}},
    ("file_path",),
)
_WRITE = _Shape(
    "write",
    "Write a whole file of the project, creating its folders as needed.",
    {"file_path": _TEXT, "content": _TEXT},
    ("file_path", "content"),
)
_EDIT = _Shape(
    "edit",
    "Replace text in a file of the project by exact match. old_string must occur exactly once unless replace_all.",
    {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT, "replace_all": {"type": "boolean"}},
    ("file_path", "old_string", "new_string"),
)
_GLOB = _Shape(
    "glob",
    "List files of the project that match a pattern such as **/*.py, newest first.",
    {"pattern": _TEXT, "path": _TEXT},
    ("pattern",),
)
_GREP = _Shape(
    "grep",
    "Search the project's files for a regular expression; gives path:line:text.",
    {"pattern": _TEXT, "path": _TEXT},
    ("pattern",),
    is_search=True,
)


def file_tools(workspace: Workspace, before_edit: Callable[[str], None]) -> list[Tool]:
    """read, write, edit, glob, grep.

    `before_edit` is called with the path relative to the project before a file is touched; it may block, and raises
    ToolError to refuse.
    """
    files = _Files(workspace, before_edit)
    acts = ((_READ, files.read), (_WRITE, files.write), (_EDIT, files.edit), (_GLOB, files.glob), (_GREP, files.grep))
    return [_tool(workspace, shape, act) for shape, act in acts]


def capped(text: str) -> str:
    """The text, cut with a mark when it is too long for a model."""
    if len(text) <= MOST_CHARS:
        return text
    return f"{text[:MOST_CHARS]}\n[cut after {MOST_CHARS:,} of {len(text):,} characters]"


def _tool(workspace: Workspace, shape: _Shape, act: Callable[[dict[str, Any]], str]) -> Tool:
    async def call(given: dict[str, Any]) -> str:
        try:
            shape.check(given)
            # The time limit of a search needs the main thread, the others may block.
            said = act(given) if shape.is_search else await asyncio.to_thread(act, given)
        except ToolError as error:
            raise ToolError(redact(str(error), workspace.secrets)) from None
        except OSError as error:
            raise ToolError(f"{shape.name}: {os.strerror(error.errno or 0)}.") from None
        except Exception as error:  # noqa: BLE001 - whatever it is, the model reads no path or value of ours
            raise ToolError(f"{shape.name} failed ({type(error).__name__}).") from None
        return capped(redact(said, workspace.secrets))

    return Tool(shape.name, shape.description, shape.schema(), call)


class _Files:
    """What the tools do."""

    def __init__(self, workspace: Workspace, before_edit: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._before_edit = before_edit

    def read(self, given: dict[str, Any]) -> str:
        path = relative_to_project(self._workspace, given["file_path"])
        # Redacted before it is cut: a part of a key has not the shape of one.
        text = redact(_decode(path, self._open(path).data), self._workspace.secrets)
        view = given.get("view_range")
        if not view:
            return text
        if not isinstance(view, list) or len(view) != 2 or not all(isinstance(number, int) for number in view):
            raise ToolError("view_range must be [first line, last line].")
        lines = text.split("\n")
        return "\n".join(lines[max(0, view[0] - 1) : view[1] if view[1] > 0 else len(lines)])

    def write(self, given: dict[str, Any]) -> str:
        path = relative_to_project(self._workspace, given["file_path"])
        refuse_sealed(self._workspace, path)
        try:
            old = read_file(self._workspace, path)
        except FileNotFoundError:
            old = None
        _refuse_mark(given["content"], old.data if old else b"")
        data = given["content"].encode()
        self._before_edit(str(path))
        write_file(self._workspace, path, data, old)
        return f"wrote {len(data):,} bytes to {path}"

    def edit(self, given: dict[str, Any]) -> str:
        path = relative_to_project(self._workspace, given["file_path"])
        refuse_sealed(self._workspace, path)
        content = self._open(path)
        text, old, new = _decode(path, content.data), given["old_string"], given["new_string"]
        count = _count(path, text, old, may_repeat=bool(given.get("replace_all")))
        _refuse_mark(new, content.data)
        data = text.replace(old, new).encode()
        self._before_edit(str(path))
        write_file(self._workspace, path, data, content)
        return f"edited {path} ({count} replacement{'s' if count > 1 else ''})"

    def glob(self, given: dict[str, Any]) -> str:
        start = relative_to_project(self._workspace, given.get("path") or ".")
        return find_names(self._workspace, start, given["pattern"])

    def grep(self, given: dict[str, Any]) -> str:
        start = relative_to_project(self._workspace, given.get("path") or ".")
        return find_lines(self._workspace, start, given["pattern"])

    def _open(self, path: PurePosixPath) -> Content:
        try:
            return read_file(self._workspace, path)
        except FileNotFoundError:
            raise ToolError(f"{path} does not exist.") from None


def _decode(path: PurePosixPath, data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(f"{path} is a binary file ({len(data):,} bytes), not text.")
    return text


def _count(path: PurePosixPath, text: str, old: str, *, may_repeat: bool) -> int:
    """How often `old` occurs.  Raises ToolError, with the likely reason, when that is not what an edit needs."""
    if not old:
        raise ToolError("old_string is empty; use write for a new file.")
    count = text.count(old)
    if count == 0:
        hint = "read the file and copy the text exactly"
        if MARK in old:
            hint = f"{MARK} stands for a secret that you are not shown, so leave that part out of old_string"
        elif text.replace("\r\n", "\n").count(old):
            hint = "its lines end with \\r\\n, so old_string must too"
        raise ToolError(f"old_string does not occur in {path}; {hint}.")
    if count > 1 and not may_repeat:
        raise ToolError(f"old_string occurs {count} times in {path}; add more of its surroundings, or set replace_all.")
    return count


def _refuse_mark(new: str, old: bytes) -> None:
    if MARK in new and MARK.encode() not in old:
        raise ToolError(f"The text holds {MARK}, which stands for a secret that you are not shown: use edit around it.")
