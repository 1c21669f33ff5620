"""A real notification service on a private D-Bus: it writes down what it is asked to show.

python notification_service.py FILE        (on the bus of DBUS_SESSION_BUS_ADDRESS)
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

from dbus_fast.aio import MessageBus
from dbus_fast.annotations import DBusDict, DBusInt32, DBusSignature, DBusStr, DBusUInt32
from dbus_fast.service import ServiceInterface, method

Texts = Annotated[list[str], DBusSignature("as")]
Four = Annotated[list[str], DBusSignature("ssss")]


class Notifications(ServiceInterface):
    """org.freedesktop.Notifications, as far as a notifier asks for it."""

    def __init__(self, file: Path) -> None:
        super().__init__("org.freedesktop.Notifications")
        self._file = file
        self._count = 0

    @method("Notify")
    def notify(
        self,
        app_name: DBusStr,
        _replaces: DBusUInt32,
        _icon: DBusStr,
        summary: DBusStr,
        body: DBusStr,
        _actions: Texts,
        _hints: DBusDict,
        _timeout: DBusInt32,
    ) -> DBusUInt32:
        self._count += 1
        with self._file.open("a") as file:
            file.write(json.dumps([app_name, summary, body]) + "\n")
        return self._count

    @method("GetCapabilities")
    def capabilities(self) -> Texts:
        return ["body"]

    @method("GetServerInformation")
    def information(self) -> Four:
        return ["stub", "test", "1", "1.2"]


async def main() -> None:
    bus = await MessageBus().connect()
    bus.export("/org/freedesktop/Notifications", Notifications(Path(sys.argv[1])))
    await bus.request_name("org.freedesktop.Notifications")
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main())
