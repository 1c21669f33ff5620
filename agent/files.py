"""The file tools of a session, by the names and schemas of the SDK's own agent toolset, confined to the project."""

import asyncio
import functools
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from agent.confinement import files_below, read_file, refuse_protected, relative_to_project, write_file
from agent.tools import Tool, ToolError, Workspace
from store.redaction import MARK, redact

MOST_CHARS = 50_000
MOST_MATCHES = 200
MOST_FILES = 20_000
GREP_SECS = 20

# In a process of its own: a pattern that backtracks for ever can then be ended.
_GREP = """
import json, re, sys
asked = json.load(sys.stdin)
pattern = re.compile(asked["pattern"])
left = asked["most"]
for name, path in asked["files"]:
    try:
        with open(path, "rb") as file:
            data = file.read(5 * 1024 * 1024)
    except OSError:
        continue
    if b"\\0" in data[:512]:
        continue
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if len(line) <= 2000 and pattern.search(line):
            print(f"{name}:{number}:{line}")
            left -= 1
            if left == 0:
                sys.exit()
"""


def file_tools(workspace: Workspace, before_edit: Callable[[str], None]) -> list[Tool]:
    """read, write, edit, glob, grep.

    `before_edit` is called with the path relative to the project before a file is touched; it may block, and raises
    ToolError to refuse.
    """
    make = functools.partial(_tool, workspace)
    return [
        make(
            "read",
            "Read a text file of the project; view_range [first, last] for a part.",
            {"file_path": _TEXT, "view_range": {"type": "array", "items": {"type": "integer"}}},
            ["file_path"],
            functools.partial(_read, workspace),
        ),
        make(
            "write",
            "Write a whole file, creating its folder when needed.",
            {"file_path": _TEXT, "content": _TEXT},
            ["file_path", "content"],
            functools.partial(_write, workspace, before_edit),
        ),
        make(
            "edit",
            "Replace text in a file by exact match; old_string must occur once unless replace_all.",
            {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT, "replace_all": {"type": "boolean"}},
            ["file_path", "old_string", "new_string"],
            functools.partial(_edit, workspace, before_edit),
        ),
        make(
            "glob",
            "List files that match a pattern such as **/*.py, newest first.",
            {"pattern": _TEXT, "path": _TEXT},
            ["pattern"],
            functools.partial(_glob, workspace),
        ),
        make(
            "grep",
            "Search file contents for a regular expression.",
            {"pattern": _TEXT, "path": _TEXT},
            ["pattern"],
            functools.partial(_grep, workspace),
        ),
    ]


_TEXT = {"type": "string"}


def _tool(
    workspace: Workspace,
    name: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    act: Callable[[dict[str, Any]], str],
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    async def call(given: dict[str, Any]) -> str:
        for field in required:
            if not isinstance(given.get(field), str):
                raise ToolError(f"{field} is missing; it must be text.")
        try:
            said = await asyncio.to_thread(act, given)
        except ToolError as error:
            raise ToolError(redact(str(error), workspace.secrets)) from None
        return _capped(redact(said, workspace.secrets))

    return Tool(name, description, schema, call)


def _capped(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}\n[cut after {MOST_CHARS:,} characters]"


def _decode(path: PurePosixPath, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not text ({len(data):,} bytes).") from None


def _read(workspace: Workspace, given: dict[str, Any]) -> str:
    path = relative_to_project(workspace, given["file_path"])
    text = _decode(path, read_file(workspace, path)[0])
    view = given.get("view_range")
    if not view:
        return text
    if len(view) != 2 or not all(isinstance(number, int) for number in view):
        raise ToolError("view_range must be [first line, last line].")
    lines = text.split("\n")
    return "\n".join(lines[max(0, view[0] - 1) : view[1] if view[1] > 0 else len(lines)])


def _write(workspace: Workspace, before_edit: Callable[[str], None], given: dict[str, Any]) -> str:
    path = relative_to_project(workspace, given["file_path"])
    refuse_protected(workspace, path)
    mode, old = None, ""
    if (workspace.project / path).exists():
        data, mode = read_file(workspace, path)
        old = data.decode(errors="replace")
    _refuse_mark(given["content"], old)
    before_edit(str(path))
    write_file(workspace, path, given["content"].encode(), mode)
    return f"wrote {path} ({len(given['content'].encode()):,} bytes)"


def _edit(workspace: Workspace, before_edit: Callable[[str], None], given: dict[str, Any]) -> str:
    path = relative_to_project(workspace, given["file_path"])
    refuse_protected(workspace, path)
    data, mode = read_file(workspace, path)
    text, old, new = _decode(path, data), given["old_string"], given["new_string"]
    count = text.count(old) if old else 0
    if count == 0:
        raise ToolError(f"old_string does not occur in {path}; read the file and copy the text exactly.")
    if count > 1 and not given.get("replace_all"):
        raise ToolError(f"old_string occurs {count} times in {path}; add context, or set replace_all.")
    _refuse_mark(new, text)
    before_edit(str(path))
    write_file(workspace, path, text.replace(old, new).encode(), mode)
    return f"edited {path} ({count} replacement{'s' if count > 1 else ''})"


def _refuse_mark(new: str, old: str) -> None:
    if MARK in new and MARK not in old:
        raise ToolError(
            f"The text holds {MARK}, which stands for a secret you were not shown; leave that line as it is."
        )


def _glob(workspace: Workspace, given: dict[str, Any]) -> str:
    pattern = given["pattern"]
    if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
        raise ToolError("The pattern must be relative, without '..'.")
    start = relative_to_project(workspace, given.get("path") or ".")
    base = workspace.project / start
    allowed = set(itertools.islice(files_below(workspace, start), MOST_FILES))
    try:
        found = [path for path in itertools.islice(base.glob(pattern), MOST_FILES) if path in allowed]
    except (ValueError, OSError, NotImplementedError) as error:
        raise ToolError(f"The pattern cannot be used: {error}.") from None
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return "\n".join(str(path.relative_to(workspace.project)) for path in found[:MOST_MATCHES]) or "no matches"


def _grep(workspace: Workspace, given: dict[str, Any]) -> str:
    start = relative_to_project(workspace, given.get("path") or ".")
    files = [
        (str(path.relative_to(workspace.project)), str(path))
        for path in itertools.islice(files_below(workspace, start), MOST_FILES)
    ]
    asked = json.dumps({"pattern": given["pattern"], "files": files, "most": MOST_MATCHES * 5})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _GREP],
            input=asked,
            capture_output=True,
            text=True,
            timeout=GREP_SECS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"The search took longer than {GREP_SECS} s; use a simpler pattern.") from None
    if done.returncode:
        raise ToolError(f"The pattern cannot be used: {done.stderr.strip().rpartition(chr(10))[2]}")
    return done.stdout.rstrip("\n") or "no matches"
