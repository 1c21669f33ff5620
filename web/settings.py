"""Settings: who heals, with which key and model, and how the app looks."""

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, make_response, request
from flask.typing import ResponseReturnValue

from scheduler.retention import Excess, find_excess
from store import settings
from store.errors import Invalid
from web.desk import desk
from web.shell import page, part, toast
from web.whole import read_whole

blueprint = Blueprint("settings", __name__)


@dataclass(frozen=True)
class SettingsView:
    """`values`: each setting's value and origin by name."""

    values: dict[str, Any]
    key_origin: str
    toasts: str
    path: str
    home: str
    excess: Excess | None


@blueprint.get("/settings")
def show_settings() -> ResponseReturnValue:
    return page("settings/index.html", _view(), "Settings")


@blueprint.post("/settings/<name>")
def save(name: str) -> ResponseReturnValue:
    """One control saves at once."""
    setting = settings.SETTINGS.get(name)
    if setting is None:
        raise Invalid("setting", f"setting: there is no {name}.")
    text = request.form.get("value", "").strip()
    desk().database.write(lambda session: settings.store(session, name, text))
    return toast("Saved.")


@blueprint.post("/settings/key")
def save_key() -> ResponseReturnValue:
    """The model key goes into the system's keychain and nowhere else."""
    desk().acting().keychain.store(request.form.get("key", "").strip())
    answer = make_response(toast("The key is in the system's keychain. New heals use it."))
    answer.headers["HX-Trigger"] = "settings-changed"
    return answer


@blueprint.post("/settings/key/test")
def test_key() -> ResponseReturnValue:
    said = desk().acting().keychain.test()
    return toast(said, "ok" if said.startswith("The key works") else "bad")


@blueprint.get("/settings/panel")
def panel() -> ResponseReturnValue:
    return part("settings/_panel.html", _view())


def _view() -> SettingsView:
    facts = desk().facts()
    return SettingsView(
        values=facts["settings"],
        key_origin=facts["modelKey"],
        toasts=facts["toasts"],
        path=facts["path"],
        home=facts["home"],
        excess=_excess(str(facts["settings"]["CRONMEND_KEEP_RUNS"]["value"])),
    )


@dataclass(frozen=True)
class ExcessView:
    excess: Excess | None


@blueprint.get("/settings/excess")
def excess() -> ResponseReturnValue:
    """What would be removed if so many runs were kept."""
    return part("settings/_excess.html", ExcessView(_excess(request.args.get("value", ""))))


def _excess(text: str) -> Excess | None:
    keep = read_whole(text)
    if not keep:
        return None
    with desk().database.read() as session:
        return find_excess(session, keep)
