"""The JSON shapes of the command line and the CLI server (design §3.7): keys may be added, none leaves."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from store.cards import Card
from store.clock import iso
from store.events import Event
from store.heals import Heal
from store.jobs import Job
from store.projects import Project
from store.runs import Run
from store.sessions import Conversation, Message
from store.slot_rates import SlotRate

Shape = dict[str, Any]


def _at(when: datetime | None) -> str | None:
    return iso(when) if when else None


def job(row: Job) -> Shape:
    last = None
    if row.last_run_id:
        last = {
            "id": row.last_run_id,
            "status": row.last_run_status,
            "startedAt": _at(row.last_run_started_at),
            "durationMs": row.last_run_duration_ms,
        }
    return {
        "id": row.id,
        "name": row.name,
        "targetType": row.target_type,
        "command": row.command,
        "recipe": row.recipe,
        "prompt": row.prompt,
        "projectId": row.project_id,
        "cwd": row.cwd,
        "env": row.env,
        "schedule": row.schedule,
        "scheduleText": row.schedule_text,
        "timezone": row.timezone,
        "runMode": row.run_mode,
        "runAt": _at(row.run_at),
        "isActive": row.is_active,
        "pausedBy": row.paused_by,
        "pausedUntil": _at(row.person_paused_until),
        "blockedReason": row.blocked_reason,
        "overlap": row.overlap,
        "catchUp": row.catch_up,
        "catchUpMaxAgeSecs": row.catch_up_max_age_secs,
        "jitterSecs": row.jitter_secs,
        "timeoutSecs": row.timeout_secs,
        "retries": row.retries,
        "retryBackoffSecs": row.retry_backoff_secs,
        "effects": row.effects,
        "verifyCommand": row.verify_command,
        "cleanupCommand": row.cleanup_command,
        "retryOn": row.retry_on,
        "pool": row.pool,
        "successWhen": row.success_when,
        "expectWithinSecs": row.expect_within_secs,
        "requireApproval": row.require_approval,
        "healingEnabled": row.healing_enabled,
        "consecutiveHealFailures": row.consecutive_heal_failures,
        "deliverTo": row.deliver_to,
        "tags": row.tags,
        "nextRunAt": _at(row.next_run_at) if row.is_active else None,
        "lastRun": last,
        "createdAt": _at(row.created_at),
        "updatedAt": _at(row.updated_at),
    }


def job_in_full(row: Job, rate: SlotRate) -> Shape:
    """A job with how its due slots ended."""
    return {**job(row), "slotRate": {"due": rate.due, "green": rate.green, "since": _at(rate.since)}}


def run(row: Run) -> Shape:
    return {
        "id": row.id,
        "jobId": row.job_id,
        "slotAt": _at(row.slot_at),
        "status": row.status,
        "skipReason": row.skip_reason,
        "slotsCovered": row.slots_covered,
        "triggeredBy": row.triggered_by,
        "attempt": row.attempt,
        "retryOf": row.retry_of,
        "rootRunId": row.root_run_id,
        "healId": row.heal_id,
        "startedAt": _at(row.started_at),
        "completedAt": _at(row.completed_at),
        "durationMs": row.duration_ms,
        "exitCode": row.exit_code,
        "signal": row.signal,
        "error": row.error,
        "category": row.category,
        "cause": row.cause,
        "systemMarkedFailure": row.system_marked_failure,
        "healDecision": row.heal_decision,
        "suppressed": row.suppressed,
        "wakeContext": row.wake_context,
        "logBytes": row.log_bytes,
        "logCut": row.log_cut,
    }


def run_in_full(row: Run) -> Shape:
    """A run with its evidence."""
    return {**run(row), "evidence": row.failure_evidence_json}


def heal(row: Heal) -> Shape:
    return {
        "id": row.id,
        "jobId": row.job_id,
        "runId": row.run_id,
        "status": row.status,
        "isManual": row.is_manual,
        "category": row.category,
        "cause": row.cause,
        "sessionId": row.session_id,
        "closingReason": row.closing_reason,
        "abandonedReason": row.abandoned_reason,
        "countsAsFailure": row.counts_as_failure,
        "probation": row.probation,
        "rootCause": row.root_cause,
        "fix": row.fix,
        "proof": row.proof,
        "costUsd": row.cost_usd,
        "createdAt": _at(row.created_at),
        "spawnedAt": _at(row.spawned_at),
        "closedAt": _at(row.closed_at),
        "undoneAt": _at(row.undone_at),
    }


def session(row: Conversation) -> Shape:
    return {
        "id": row.id,
        "projectId": row.project_id,
        "origin": row.origin,
        "jobId": row.job_id,
        "runId": row.run_id,
        "title": row.title,
        "status": row.status,
        "provider": row.provider,
        "model": row.model,
        "tokensIn": row.tokens_in,
        "tokensOut": row.tokens_out,
        "costUsd": row.cost_usd,
        "error": row.error,
        "createdAt": _at(row.created_at),
        "endedAt": _at(row.ended_at),
    }


def message(row: Message) -> Shape:
    return {
        "seq": row.seq,
        "role": row.role,
        "provider": row.provider,
        "content": row.content,
        "stopReason": row.stop_reason,
        "at": _at(row.at),
    }


def card(row: Card) -> Shape:
    return {
        "id": row.id,
        "actionKind": row.action_kind,
        "jobId": row.job_id,
        "runId": row.run_id,
        "title": row.title,
        "preview": row.preview,
        "payload": row.payload,
        "status": row.status,
        "snoozedUntil": _at(row.snoozed_until),
        "createdAt": _at(row.created_at),
        "resolvedAt": _at(row.resolved_at),
        "resolution": row.resolution,
        "reason": row.reason,
    }


def project(row: Project) -> Shape:
    return {"id": row.id, "name": row.name, "folderPath": row.folder_path, "isWorkspace": row.is_workspace}


def event(row: Event) -> Shape:
    return {
        "id": row.id,
        "at": _at(row.at),
        "kind": row.kind,
        "jobId": row.job_id,
        "runId": row.run_id,
        "healId": row.heal_id,
        "sessionId": row.session_id,
        "actor": row.actor,
        "reason": row.reason,
        "changes": row.changes,
    }


def ended_run(row: Run, texts: Mapping[str, str], *, truncated: bool) -> Shape:
    """The answer of `/run`."""
    return {
        "runId": row.id,
        "status": row.status,
        "exitCode": row.exit_code,
        "durationMs": row.duration_ms,
        "error": row.error,
        "stdout": texts["out"],
        "stderr": texts["err"],
        "truncated": truncated,
    }
