"""Commands in the sandbox, as short as a test wants them."""

import os

from agent.capture import Completed
from agent.sandbox import find_sandbox
from agent.tools import Workspace

SANDBOX = find_sandbox()


def run(
    workspace: Workspace, command: str, *, writable: bool = True, path: str = os.environ["PATH"], secs: float = 30
) -> Completed:
    assert SANDBOX is not None
    return SANDBOX.run(
        workspace, ["/bin/sh", "-c", command], writable=writable, cwd=workspace.project, path=path, timeout_secs=secs
    )


def said(workspace: Workspace, command: str, *, writable: bool = True) -> str:
    return run(workspace, command, writable=writable).output.decode()


def python(workspace: Workspace, program: str) -> str:
    (workspace.project / "probe.py").write_text(program)
    return said(workspace, "python3 probe.py")
