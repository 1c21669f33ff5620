"""cronmend projects: list, add, rm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from desktop.commands.client import Client
from desktop.commands.printing import json_option, print_json, print_table


@click.group()
def projects() -> None:
    """Projects: the folders you work in."""


@projects.command("list")
@json_option
def list_projects(*, as_json: bool) -> None:
    """List all projects."""
    rows = Client().call("GET", "/projects")
    if as_json:
        print_json(rows)
        return
    columns: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("ID", lambda one: one["id"]),
        ("NAME", lambda one: one["name"]),
        ("FOLDER", lambda one: one["folderPath"]),
    ]
    print_table(rows, columns, "No projects yet. Add a folder: cronmend projects add PATH")


@projects.command()
@click.argument("path")
@click.option("--name", help="Another name than the folder's.")
@json_option
def add(path: str, name: str | None, *, as_json: bool) -> None:
    """Make a folder a project; prints its id."""
    body = {"folderPath": str(Path(path).expanduser().absolute()), **({"name": name} if name else {})}
    project = Client().call("POST", "/projects", body)
    print_json(project) if as_json else print(project["id"])


@projects.command("rm")
@click.argument("project_id", type=int)
@json_option
def remove(project_id: int, *, as_json: bool) -> None:
    """Forget a project; its folder stays."""
    answer = Client().call("DELETE", f"/projects/{project_id}")
    print_json(answer) if as_json else print(f"Project {project_id} is forgotten; its folder is untouched.")
