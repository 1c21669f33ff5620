"""What a person's session may do about jobs: look at them, and propose what the person then decides."""

import asyncio
import json
from typing import Any

from agent.remote import Remote
from agent.tools import Tool, ToolError

SEEN = ("id", "name", "targetType", "command", "prompt", "schedule", "scheduleText", "timezone", "isActive", "pausedBy")
RECENT_RUNS = 10

_TEXT = {"type": "string"}
_DRAFT = {
    "name": {**_TEXT, "description": "A short name."},
    "command": {**_TEXT, "description": "The shell line to run. Give either this or prompt."},
    "prompt": {**_TEXT, "description": "What Claude is to do at each run. Give either this or command."},
    "schedule": {**_TEXT, "description": "As in 'weekdays at 09:30', 'every 30m' or five cron fields."},
    "runAt": {**_TEXT, "description": "For a job that runs once: the time, in place of a schedule."},
    "projectId": {"type": "integer", "description": "The project it runs in."},
    "effects": {"enum": ["none", "idempotent", "external", "unknown"], "description": "What a second run would do."},
}


def job_tools(remote: Remote) -> list[Tool]:
    """`list_jobs`, `job_status`, `propose_job`, `propose_project_removal`."""
    asked = _Asked(remote)
    number = {"type": "integer"}
    return [
        Tool("list_jobs", "All scheduled jobs of this machine.", _schema({}), asked.list_jobs),
        Tool("job_status", "One job with its last runs.", _schema({"job_id": number}, ["job_id"]), asked.job_status),
        Tool(
            "propose_job",
            "Propose a new scheduled job. It is not made until the person approves it in the inbox.",
            _schema(_DRAFT, ["name"]),
            asked.propose_job,
        ),
        Tool(
            "propose_project_removal",
            "Propose to forget a project with its jobs. The person decides; files are never deleted.",
            _schema({"project_id": number, "why": _TEXT}, ["project_id", "why"]),
            asked.propose_removal,
        ),
    ]


def _schema(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required or [],
        "additionalProperties": False,
    }


class _Asked:
    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def list_jobs(self, _given: dict[str, Any]) -> str:
        jobs = await self._call("GET", "/cron/jobs")
        return json.dumps([_brief(job) for job in jobs])

    async def job_status(self, given: dict[str, Any]) -> str:
        number = _number(given, "job_id")
        job = await self._call("GET", f"/cron/jobs/{number}")
        runs = await self._call("GET", f"/cron/runs?job={number}&limit={RECENT_RUNS}")
        told = ("id", "status", "skipReason", "startedAt", "durationMs", "exitCode", "cause")
        return json.dumps({**_brief(job), "runs": [{key: run[key] for key in told} for run in runs]})

    async def propose_job(self, given: dict[str, Any]) -> str:
        await self._call("POST", "/cron/jobs", given)
        return "The proposal is in the person's inbox."

    async def propose_removal(self, given: dict[str, Any]) -> str:
        await self._call("DELETE", f"/projects/{_number(given, 'project_id')}", {"why": str(given.get("why") or "")})
        return "The proposal is in the person's inbox."

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            status, answer = await asyncio.to_thread(self._remote.call, method, path, body)
        except OSError as error:
            raise ToolError(f"The app does not answer ({type(error).__name__}).") from None
        if status >= 400:
            raise ToolError(str((answer.get("error") or {}).get("message") or f"refused with {status}"))
        return answer


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    return {key: job[key] for key in SEEN} | {"nextRunAt": job["nextRunAt"], "lastRun": job["lastRun"]}


def _number(given: dict[str, Any], name: str) -> int:
    value = given.get(name)
    if not isinstance(value, int):
        raise ToolError(f"{name} must be a whole number.")
    return value
