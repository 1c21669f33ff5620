"""Failures a person sees.  They know nothing of HTTP or exit codes; web and desktop give each family its own."""


class Refusal(Exception):  # noqa: N818 - the word people read
    """Something asked for that will not be done; `code` is stable, the message says the remedy."""

    def __init__(self, message: str, *, code: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field


class Invalid(Refusal):
    """A value that cannot be accepted, in a named field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, code="invalid", field=field)


class NotFound(Refusal):
    """An object that is not there (any more)."""

    def __init__(self, what: str, identity: object) -> None:
        super().__init__(f"There is no {what} {identity}.", code="not_found")


class Conflict(Refusal):
    """Right in form, but not in the present state."""

    def __init__(self, message: str, *, code: str, field: str | None = None) -> None:
        super().__init__(message, code=code, field=field)


class Forbidden(Refusal):
    """A caller who may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="forbidden")


class NotRunning(Refusal):
    """Only a running app can do it."""

    def __init__(self) -> None:
        super().__init__(
            "Cronmend is not running, and this needs it. Start it with: cronmend serve", code="not_running"
        )


class Secondary(Conflict):
    """A second instance leaves it to the first."""

    def __init__(self) -> None:
        super().__init__("This is a second instance: it shows, and runs, heals and decides nothing.", code="secondary")
