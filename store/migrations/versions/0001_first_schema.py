"""First schema"""

from alembic import op
import sqlalchemy as sa

import store.types

revision = '0001'
down_revision = None


def upgrade() -> None:
    op.create_table('boots',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('started_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('ended_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('version', sa.String(), nullable=False),
    sa.Column('pid', sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_boots')),
    sqlite_autoincrement=True
    )
    op.create_table('cli_pending_actions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('action_kind', sa.String(), nullable=False),
    sa.Column('target', sa.String(), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=True),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('preview', sa.String(), nullable=False),
    sa.Column('payload', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('snoozed_until', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('created_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('resolved_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('dispatched_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('resolution', sa.String(), nullable=True),
    sa.Column('reason', sa.String(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cli_pending_actions')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('cli_pending_actions', schema=None) as batch_op:
        batch_op.create_index('ix_cli_pending_actions_job', ['job_id', 'status'], unique=False)
        batch_op.create_index('uq_cli_pending_actions_open', ['action_kind', 'target'], unique=True, sqlite_where=sa.text("status = 'pending'"))

    op.create_table('events',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=True),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('heal_id', sa.Integer(), nullable=True),
    sa.Column('session_id', sa.Integer(), nullable=True),
    sa.Column('actor', sa.String(), nullable=False),
    sa.Column('reason', sa.String(), nullable=True),
    sa.Column('changes', sa.JSON(none_as_null=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_events')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('events', schema=None) as batch_op:
        batch_op.create_index('ix_events_job', ['job_id', 'id'], unique=False, sqlite_where=sa.text('job_id IS NOT NULL'))
        batch_op.create_index('ix_events_run', ['run_id'], unique=False, sqlite_where=sa.text('run_id IS NOT NULL'))

    op.create_table('projects',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('folder_path', sa.String(), nullable=False),
    sa.Column('is_workspace', sa.Boolean(), nullable=False),
    sa.Column('created_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_projects')),
    sa.UniqueConstraint('folder_path', name=op.f('uq_projects_folder_path')),
    sqlite_autoincrement=True
    )
    op.create_table('settings',
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('value', sa.String(), nullable=False),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_settings'))
    )
    op.create_table('cron_jobs',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('target_type', sa.String(), nullable=False),
    sa.Column('command', sa.String(), nullable=True),
    sa.Column('recipe', sa.String(), nullable=True),
    sa.Column('prompt', sa.String(), nullable=True),
    sa.Column('project_id', sa.Integer(), nullable=True),
    sa.Column('cwd', sa.String(), nullable=True),
    sa.Column('env', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('schedule', sa.String(), nullable=True),
    sa.Column('schedule_text', sa.String(), nullable=True),
    sa.Column('timezone', sa.String(), nullable=False),
    sa.Column('run_mode', sa.String(), nullable=False),
    sa.Column('run_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('overlap', sa.String(), nullable=False),
    sa.Column('catch_up', sa.String(), nullable=False),
    sa.Column('catch_up_max_age_secs', sa.Integer(), nullable=True),
    sa.Column('jitter_secs', sa.Integer(), nullable=False),
    sa.Column('timeout_secs', sa.Integer(), nullable=True),
    sa.Column('retries', sa.Integer(), nullable=False),
    sa.Column('retry_backoff_secs', sa.Integer(), nullable=False),
    sa.Column('effects', sa.String(), nullable=False),
    sa.Column('verify_command', sa.String(), nullable=True),
    sa.Column('success_when', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('require_approval', sa.Boolean(), nullable=False),
    sa.Column('healing_enabled', sa.Boolean(), nullable=False),
    sa.Column('consecutive_heal_failures', sa.Integer(), nullable=False),
    sa.Column('deliver_to', sa.String(), nullable=True),
    sa.Column('tags', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('person_paused_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('person_paused_until', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('breaker_paused_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('paused_session_id', sa.Integer(), nullable=True),
    sa.Column('paused_heal_id', sa.Integer(), nullable=True),
    sa.Column('blocked_reason', sa.String(), nullable=True),
    sa.Column('done_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('next_run_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('last_run_id', sa.Integer(), nullable=True),
    sa.Column('last_run_status', sa.String(), nullable=True),
    sa.Column('last_run_started_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('last_run_duration_ms', sa.Integer(), nullable=True),
    sa.Column('created_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('updated_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_cron_jobs_project_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cron_jobs')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('cron_jobs', schema=None) as batch_op:
        batch_op.create_index('ix_cron_jobs_next_run', ['next_run_at'], unique=False, sqlite_where=sa.text('next_run_at IS NOT NULL'))

    op.create_table('sessions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('project_id', sa.Integer(), nullable=False),
    sa.Column('origin', sa.String(), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=True),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('provider', sa.String(), nullable=True),
    sa.Column('model', sa.String(), nullable=True),
    sa.Column('tokens_in', sa.Integer(), nullable=False),
    sa.Column('tokens_out', sa.Integer(), nullable=False),
    sa.Column('cost_usd', sa.Double(), nullable=False),
    sa.Column('created_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('ended_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_sessions_project_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_sessions')),
    sqlite_autoincrement=True
    )
    op.create_table('cron_heal_attempts',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('is_manual', sa.Boolean(), nullable=False),
    sa.Column('category', sa.String(), nullable=True),
    sa.Column('cause', sa.String(), nullable=True),
    sa.Column('session_id', sa.Integer(), nullable=True),
    sa.Column('worker_pid', sa.Integer(), nullable=True),
    sa.Column('worker_start', sa.Integer(), nullable=True),
    sa.Column('worker_boot_id', sa.String(), nullable=True),
    sa.Column('closing_reason', sa.String(), nullable=True),
    sa.Column('abandoned_reason', sa.String(), nullable=True),
    sa.Column('counts_as_failure', sa.Boolean(), nullable=True),
    sa.Column('failures_before', sa.Integer(), nullable=False),
    sa.Column('probation', sa.String(), nullable=False),
    sa.Column('probation_green', sa.Integer(), nullable=False),
    sa.Column('root_cause', sa.String(), nullable=True),
    sa.Column('fix', sa.String(), nullable=True),
    sa.Column('proof', sa.String(), nullable=True),
    sa.Column('cost_usd', sa.Double(), nullable=False),
    sa.Column('created_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('spawned_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('went_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('closed_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('undone_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['cron_jobs.id'], name=op.f('fk_cron_heal_attempts_job_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['session_id'], ['sessions.id'], name=op.f('fk_cron_heal_attempts_session_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cron_heal_attempts')),
    sa.UniqueConstraint('run_id', name=op.f('uq_cron_heal_attempts_run_id')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('cron_heal_attempts', schema=None) as batch_op:
        batch_op.create_index('ix_cron_heal_attempts_job', ['job_id', 'id'], unique=False)
        batch_op.create_index('ix_cron_heal_attempts_session', ['session_id'], unique=False, sqlite_where=sa.text('session_id IS NOT NULL'))
        batch_op.create_index('uq_cron_heal_attempts_open', ['job_id'], unique=True, sqlite_where=sa.text("status IN ('pending', 'spawned')"))

    op.create_table('cron_runs',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('slot_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('slots_covered', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('skip_reason', sa.String(), nullable=True),
    sa.Column('triggered_by', sa.String(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('retry_of', sa.Integer(), nullable=True),
    sa.Column('root_run_id', sa.Integer(), nullable=True),
    sa.Column('retry_number', sa.Integer(), nullable=False),
    sa.Column('retry_due_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('retry_run_id', sa.Integer(), nullable=True),
    sa.Column('heal_id', sa.Integer(), nullable=True),
    sa.Column('claimed_at', store.types.UtcDateTime(length=24), nullable=False),
    sa.Column('not_before', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('submitted_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('started_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('completed_at', store.types.UtcDateTime(length=24), nullable=True),
    sa.Column('duration_ms', sa.Integer(), nullable=True),
    sa.Column('exit_code', sa.Integer(), nullable=True),
    sa.Column('signal', sa.Integer(), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('category', sa.String(), nullable=True),
    sa.Column('cause', sa.String(), nullable=True),
    sa.Column('system_marked_failure', sa.Boolean(), nullable=False),
    sa.Column('failure_evidence_json', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('heal_decision', sa.String(), nullable=True),
    sa.Column('suppressed', sa.Boolean(), nullable=False),
    sa.Column('wake_context', sa.String(), nullable=True),
    sa.Column('log_bytes', sa.Integer(), nullable=False),
    sa.Column('abort_reason', sa.String(), nullable=True),
    sa.Column('pid', sa.Integer(), nullable=True),
    sa.Column('process_start', sa.Integer(), nullable=True),
    sa.Column('boot_id', sa.String(), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['cron_jobs.id'], name=op.f('fk_cron_runs_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cron_runs')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('cron_runs', schema=None) as batch_op:
        batch_op.create_index('ix_cron_runs_active', ['job_id'], unique=False, sqlite_where=sa.text("status IN ('pending', 'running', 'stuck', 'awaitingApproval')"))
        batch_op.create_index('ix_cron_runs_job', ['job_id', 'id'], unique=False)
        batch_op.create_index('ix_cron_runs_retry_due', ['retry_due_at'], unique=False, sqlite_where=sa.text('retry_due_at IS NOT NULL AND retry_run_id IS NULL'))
        batch_op.create_index('ix_cron_runs_status', ['status', 'id'], unique=False)
        batch_op.create_index('ix_cron_runs_undecided', ['id'], unique=False, sqlite_where=sa.text("status IN ('failed', 'timeout') AND heal_decision IS NULL AND retry_due_at IS NULL"))
        batch_op.create_index('uq_cron_runs_retry', ['root_run_id', 'attempt'], unique=True, sqlite_where=sa.text('retry_of IS NOT NULL'))
        batch_op.create_index('uq_cron_runs_slot', ['job_id', 'slot_at'], unique=True, sqlite_where=sa.text('retry_of IS NULL'))

    op.create_table('session_messages',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('session_id', sa.Integer(), nullable=False),
    sa.Column('seq', sa.Integer(), nullable=False),
    sa.Column('role', sa.String(), nullable=False),
    sa.Column('provider', sa.String(), nullable=True),
    sa.Column('content', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('usage', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('stop_reason', sa.String(), nullable=True),
    sa.Column('at', store.types.UtcDateTime(length=24), nullable=False),
    sa.ForeignKeyConstraint(['session_id'], ['sessions.id'], name=op.f('fk_session_messages_session_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_session_messages')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('session_messages', schema=None) as batch_op:
        batch_op.create_index('uq_session_messages_seq', ['session_id', 'seq'], unique=True)

    op.create_table('heal_edits',
    sa.Column('heal_id', sa.Integer(), nullable=False),
    sa.Column('path', sa.String(), nullable=False),
    sa.Column('before', sa.String(), nullable=True),
    sa.Column('after', sa.String(), nullable=True),
    sa.Column('by', sa.String(), nullable=False),
    sa.Column('at', store.types.UtcDateTime(length=24), nullable=False),
    sa.ForeignKeyConstraint(['heal_id'], ['cron_heal_attempts.id'], name=op.f('fk_heal_edits_heal_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('heal_id', 'path', name=op.f('pk_heal_edits'))
    )
    op.create_table('verifications',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('heal_id', sa.Integer(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('digest', sa.String(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('detail', sa.String(), nullable=True),
    sa.Column('at', store.types.UtcDateTime(length=24), nullable=False),
    sa.ForeignKeyConstraint(['heal_id'], ['cron_heal_attempts.id'], name=op.f('fk_verifications_heal_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_verifications')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('verifications', schema=None) as batch_op:
        batch_op.create_index('ix_verifications_heal', ['heal_id', 'id'], unique=False)

