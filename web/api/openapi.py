"""The description of the CLI server, made from its own routes."""

import re
from typing import Any

from flask import Blueprint, current_app, jsonify
from flask.typing import ResponseReturnValue
from werkzeug.routing import Rule

from scheduler.drafts import JobDraft
from web.api.access import OPEN_PATHS
from web.desk import desk

blueprint = Blueprint("openapi", __name__)

_BODIES: dict[str, dict[str, Any]] = {
    "jobs.make_job": {"$ref": "#/components/schemas/JobDraft"},
    "jobs.edit_job": {"$ref": "#/components/schemas/JobDraft"},
    "jobs.draft_job": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}},
    },
    "jobs.toggle_job": {
        "type": "object",
        "required": ["isActive"],
        "properties": {
            "isActive": {"type": "boolean"},
            "until": {"type": "string"},
            "rootCause": {"type": "string"},
            "fix": {"type": "string"},
        },
    },
    "jobs.wake_jobs": {
        "type": "object",
        "properties": {
            **{name: {"type": "array", "items": {"type": "string"}} for name in ("ids", "names", "tags")},
            "context": {"type": "string"},
            "skipIfRunning": {"type": "boolean"},
        },
    },
    "jobs.wake_job": {
        "type": "object",
        "properties": {"context": {"type": "string"}, "skipIfRunning": {"type": "boolean"}},
    },
    "runs.abort_run": {"type": "object", "properties": {"reason": {"type": "string"}}},
    "inbox.resolve_card": {
        "type": "object",
        "required": ["kind"],
        "properties": {
            "kind": {"enum": ["approve", "reject", "dismiss", "snooze"]},
            "reason": {"type": "string"},
            "until": {"type": "string"},
        },
    },
    "settings_api.change_setting": {
        "type": "object",
        "required": ["value"],
        "properties": {"value": {"type": "string"}},
    },
    "sessions.start": {
        "type": "object",
        "required": ["prompt"],
        "properties": {
            "prompt": {"type": "string"},
            "projectId": {"type": "integer"},
            "project": {"type": "string"},
            "jobId": {"type": "integer"},
        },
    },
    "sessions.send": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
    "projects.add_project": {
        "type": "object",
        "required": ["folderPath"],
        "properties": {"folderPath": {"type": "string"}, "name": {"type": "string"}},
    },
}
_QUERIES = {
    "jobs.list_jobs": ("after", "limit"),
    "jobs.run_job": ("wait", "follow"),
    "jobs.why": ("at",),
    "jobs.next_of_job": ("from", "count"),
    "jobs.next_of_schedule": ("schedule", "timezone", "from", "count"),
    "runs.list_runs": ("job", "status", "since", "before", "limit"),
    "runs.show_log": ("stream", "offset"),
    "heals.list_heals": ("job", "status", "limit"),
    "inbox.list_cards": ("status", "limit"),
    "sessions.list_sessions": ("limit",),
    "status.show_audit": ("kind", "job", "limit"),
}
_SUCCESS = {
    "jobs.make_job": ("201", "202"),
    "projects.remove_project": ("200", "202"),
    "jobs.run_job": ("200", "202"),
    "jobs.wake_job": ("202",),
    "jobs.wake_jobs": ("202",),
    "runs.abort_run": ("202",),
    "heals.start_heal": ("202",),
    "sessions.start": ("202",),
    "sessions.send": ("202",),
    "sessions.stop": ("202",),
    "projects.add_project": ("201",),
}


@blueprint.get("/openapi.json")
def describe() -> ResponseReturnValue:
    """This description."""
    paths: dict[str, dict[str, Any]] = {}
    for rule in current_app.url_map.iter_rules():
        path = re.sub(r"<(?:int:)?(\w+)>", r"{\1}", rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            paths.setdefault(path, {})[method.lower()] = _operation(rule)
    return jsonify(
        {
            "openapi": "3.1.0",
            "info": {"title": "Cronmend CLI server", "version": desk().version},
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
                "schemas": {"JobDraft": JobDraft.model_json_schema(), "Error": _ERROR},
            },
        }
    )


def _operation(rule: Rule) -> dict[str, Any]:
    view = current_app.view_functions[rule.endpoint]
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if f"<int:{name}>" in rule.rule else "string"},
        }
        for name in sorted(rule.arguments)
    ]
    in_query = [
        {"name": name, "in": "query", "schema": _KINDS.get(name, {"type": "string"})}
        for name in _QUERIES.get(rule.endpoint, ())
    ]
    answers: dict[str, Any] = {code: {"description": "done"} for code in _SUCCESS.get(rule.endpoint, ("200",))}
    answers["default"] = {
        "description": "refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    operation: dict[str, Any] = {
        "operationId": rule.endpoint,
        "summary": (view.__doc__ or "").strip().partition("\n")[0],
        "parameters": in_path + in_query,
        "responses": answers,
    }
    if rule.endpoint in _BODIES:
        operation["requestBody"] = {"content": {"application/json": {"schema": _BODIES[rule.endpoint]}}}
    if rule.rule in OPEN_PATHS:
        operation["security"] = []
    return operation


_NUMBER = {"type": "integer", "minimum": 0}
_KINDS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("job", "limit", "after", "follow", "offset", "count"), _NUMBER),
    "wait": {"enum": ["0", "1"]},
    "at": {"type": "string", "description": "2026-12-01 09:00 in the job's zone, ISO 8601, tomorrow 09:00"},
}
"""What a query's value is, where it is no text."""

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "field": {"type": "string"}},
        }
    },
}
