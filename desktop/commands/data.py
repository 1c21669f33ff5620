"""cronmend backup, restore: the database file."""

import click

from desktop.commands.printing import json_option, print_json
from desktop.paths import data_paths
from store.errors import NotFound, Refusal


@click.command()
@json_option
def backup(*, as_json: bool) -> None:
    """Copy the database, also while Cronmend runs; prints the file."""
    from store.database import back_up  # noqa: PLC0415 - SQLAlchemy; the other commands do not need it

    paths = data_paths()
    if not paths.database.exists():
        raise Refusal(f"There is no database in {paths.home} yet.", code="no_database")
    made = back_up(paths.database, paths.backups, "manual")
    print_json({"file": str(made)}) if as_json else print(made)


@click.command()
@click.argument("name", required=False)
@json_option
def restore(name: str | None, *, as_json: bool) -> None:
    """Put a backup in place of the database: the newest, or the one named.  Cronmend must not run."""
    from desktop.serve import data_lock  # noqa: PLC0415 - the engine
    from store.database import backups, check, put_back  # noqa: PLC0415

    paths = data_paths()
    kept = backups(paths.backups)
    if not kept:
        raise Refusal(f"There is no backup in {paths.backups}.", code="no_backup")
    chosen = kept[0] if name is None else next((file for file in kept if file.name == name), None)
    if chosen is None:
        raise NotFound("backup", name)
    with data_lock(paths):
        check(chosen, thorough=True)
        aside = put_back(chosen, paths.database)
    answer = {"restored": str(chosen), "setAside": str(aside) if aside else None}
    print_json(answer) if as_json else print(f"Restored {chosen.name}. Start Cronmend with: cronmend serve")
