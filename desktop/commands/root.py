"""The cronmend command: its parts, and how every failure becomes one line and an exit code."""

import sys

import click

from desktop.commands import app, data, heals, inbox, jobs, projects, runs, sample, sessions, settings
from desktop.version import VERSION
from store.errors import NotFound, Refusal
from store.storage_trouble import trouble_of

REFUSED = 2
MISSING = 3
INTERRUPTED = 130


@click.group(
    invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(VERSION, prog_name="cronmend")
@click.pass_context
def cronmend(context: click.Context) -> None:
    """Runs your scheduled jobs and repairs them when they break.

    Without a command it opens the window, or raises the one that is open.
    """
    if context.invoked_subcommand is None:
        app.open_window()


for command in (
    app.serve,
    app.status,
    app.doctor,
    app.audit,
    data.backup,
    data.restore,
    sample.sample,
    jobs.jobs,
    runs.runs,
    heals.heals,
    inbox.inbox,
    sessions.sessions,
    projects.projects,
    settings.settings,
):
    cronmend.add_command(command)


def main() -> None:
    """Runs the command line; never returns."""
    try:
        code = cronmend.main(standalone_mode=False, prog_name="cronmend")
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        sys.exit(REFUSED)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a listing went away; that is no failure to speak of
        sys.exit(0)
    except Exception as error:
        if (message := _in_words(error)) is None:
            raise
        print("cronmend: " + " ".join(message.split()), file=sys.stderr)
        sys.exit(MISSING if isinstance(error, NotFound) else REFUSED)
    sys.exit(code if isinstance(code, int) else 0)


def _in_words(error: Exception) -> str | None:
    if isinstance(error, Refusal):
        return _name_field(error)
    return error.format_message() if isinstance(error, click.ClickException) else trouble_of(error)


def _name_field(error: Refusal) -> str:
    if error.field is None or error.message.startswith(error.field):
        return error.message
    return f"{error.field}: {error.message}"
