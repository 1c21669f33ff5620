"""Writing to the database of an app that does not run, under the data lock."""

from typing import Any

from desktop.loops import Threads
from desktop.paths import data_paths, make_home
from desktop.serve import data_lock, prepare_database
from scheduler import jobs
from store.database import Database
from web.api import shapes


def add_job(body: dict[str, Any]) -> dict[str, Any]:
    """Makes a job without the app; its JSON shape.  Raises Conflict `already_running`."""
    paths = data_paths()
    make_home(paths)
    with data_lock(paths):
        prepare_database(paths)
        database = Database(paths.database)
        database.start(Threads().spawn)
        try:
            return shapes.job(database.write(lambda session: jobs.create(session, body)))
        finally:
            database.close()
