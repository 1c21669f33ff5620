"""Settings over HTTP: every value with where it comes from; changing one."""

from flask import Blueprint, jsonify
from flask.typing import ResponseReturnValue

from store import settings
from store.errors import Invalid, NotFound
from web.api import access, asked
from web.desk import desk

blueprint = Blueprint("settings_api", __name__)


@blueprint.get("/settings")
def list_settings() -> ResponseReturnValue:
    """All settings: value, origin (settings page, environment, default) and meaning."""
    access.only_the_person()
    with desk().database.read() as session:
        values = settings.read(session, desk().environment)
    return jsonify(
        [
            {"name": name, "value": value.value, "origin": value.origin, "meaning": settings.SETTINGS[name].meaning}
            for name, value in values.items()
        ]
    )


@blueprint.put("/settings/<name>")
def change_setting(name: str) -> ResponseReturnValue:
    """Keeps a value; an empty one gives the setting back to the environment or its default."""
    access.only_the_person()
    if name not in settings.SETTINGS:
        raise NotFound("setting", name)
    value = asked.body().get("value")
    if not isinstance(value, str):
        raise Invalid("value", "value: must be text.")
    desk().database.write(lambda session: settings.store(session, name, value.strip()))
    with desk().database.read() as session:
        present = settings.read(session, desk().environment)[name]
    return jsonify({"name": name, "value": present.value, "origin": present.origin})
