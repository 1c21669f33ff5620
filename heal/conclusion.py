"""From signs, stat calls and exit codes to one category and one cause that names the object that failed."""

import re
from collections.abc import Callable

from heal import exits, frames
from heal.causes import Found, find, gravest
from heal.exits import Conclusion
from heal.failure import Failure, Output
from heal.places import Places, script_in

# Below it a text says less than an exit code that has a meaning of its own.
_TELLING = 5
_MOST_QUOTED_CHARS = 200
_MOST_LOOKS = 200
_STOPS = {"abort": "stopped by a person", "replace": "stopped for the next run of this job"}

_STAMP = re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,30}\s{1,8}")
_COMPLAINT = re.compile(
    r"(?i)\b(?:error|fatal|fail(?:ed|ure|s)?|cannot|can't|couldn't|unable|refused|invalid|abort(?:ed)?)\b"
)
_NO_COMPLAINT = re.compile(
    r"(?i)\b(?:no|0|without|zero) (?:error|fail)|(?:errors?|fail(?:ed|ures?)) ?[:=] ?(?:0|none)\b"
)
_LOCAL = re.compile(r"(?:^|[^\w.])(?:localhost|127\.0\.0\.1|0\.0\.0\.0|::1|\[::1\])(?:$|[^\w.])|^(?:unix:)?/")


def conclude(failure: Failure, output: Output) -> tuple[Conclusion, list[Found]]:
    """Category and cause, and the signs they were taken from."""
    found = find(output.lines)
    if failure.stopped == "timeout":
        said = f"; last output: {output.last[:_MOST_QUOTED_CHARS]}" if output.last else "; it printed nothing"
        return ("timeout", f"timed out after {failure.timeout_secs} s{said}"), found
    if failure.stopped is not None:
        return ("unknown", _STOPS.get(failure.stopped, f"stopped ({failure.stopped})")), found
    if failure.spawn_error is not None:
        return exits.of_spawn(failure.spawn_error, failure.places), found
    return _of_output(failure, output, found), found


def _of_output(failure: Failure, output: Output, found: list[Found]) -> Conclusion:
    best = gravest(found)
    if best is not None and best.weight >= _TELLING:
        return _named(failure, output, best)
    return (
        _of_ending(failure)
        or _of_scripts(failure, output)
        or (_named(failure, output, best) if best is not None else _of_words(failure, output))
    )


def _of_ending(failure: Failure) -> Conclusion | None:
    if failure.signal:
        return exits.of_signal(failure.signal, failure.command)
    return exits.of_code(failure.exit_code, failure.command, failure.places)


def _named(failure: Failure, output: Output, found: Found) -> Conclusion:
    script = frames.script_of(output.lines[found.line])
    by_script = _of_script(failure, script) if script else None
    if found.hit == "CRLF" or by_script:
        return by_script or _of_first_line(failure, found)
    category, cause = _checked(failure, output, found)
    if found.sign.category == "recipe-step-failed" and found.weight < _TELLING:
        complaint = _complaint(output.lines[: found.line])
        cause += f": {complaint}" if complaint else ""
    place = frames.place_of(output.lines, found.line, failure.places)
    return category, f"{cause} in {place}" if place and place.partition(" line ")[0] not in cause else cause


def _of_script(failure: Failure, script: str) -> Conclusion | None:
    """What is wrong with the script as a whole that a shell complains about line by line."""
    if failure.places.own(script) is None:
        return None
    if failure.places.is_binary(script):
        return "script-error", f"not a program for this machine: {script}"
    return (
        ("script-error", f"CRLF line endings: {failure.places.shown(script)}")
        if failure.places.has_crlf(script)
        else None
    )


def _of_first_line(failure: Failure, found: Found) -> Conclusion:
    if found.words.get("file"):
        return "script-error", found.cause
    script = script_in(failure.command, failure.places)
    return "script-error", f"bad interpreter (CRLF line endings): {script or failure.command}"


def _checked(failure: Failure, output: Output, found: Found) -> Conclusion:
    """The cause as the text has it, unless the disk or the lines around it know better."""
    check = _CHECKS.get(found.hit)
    return (check(failure, output, found) if check else None) or (found.sign.category, found.cause)


def _name(found: Found) -> str:
    return found.words.get("file") or found.words.get("name") or ""


def _check_command(failure: Failure, _: Output, found: Found) -> Conclusion | None:
    return exits.missing_command(_name(found), failure.places)


def _check_missing(failure: Failure, _: Output, found: Found) -> Conclusion | None:
    """A file that is there and cannot be found has a first line that leads nowhere."""
    name, places = _name(found), failure.places
    if not name:
        return None
    fault = places.interpreter_fault(name) or _target_fault(found, places)
    if fault is not None:
        return fault
    shown = found.cause.replace(name, places.shown(name))
    if places.file(name) is not None:
        where = "now" if name.startswith("/") else "in the job's folder"
        return found.sign.category, f"{shown} (it exists {where})"
    folder = places.lacks_folder(name)
    return found.sign.category, f"{shown} (no folder {folder})" if folder else shown


def _target_fault(found: Found, places: Places) -> Conclusion | None:
    """Of a move both names are told; where the first is there, the folder of the second is missing."""
    target = found.words.get("to") or ""
    folder = places.lacks_folder(target) if target and places.file(_name(found)) is not None else None
    return ("missing-file", f"missing folder: {folder} (for {places.shown(target)})") if folder else None


def _check_refused(failure: Failure, _: Output, found: Found) -> Conclusion | None:
    name, places = _name(found), failure.places
    if not name:
        return None
    is_start = places.is_program(name) or failure.exit_code == exits.NOT_EXECUTABLE
    if is_start and places.is_folder(name):
        return "permission", f"is a folder, not a program: {places.shown(name)}"
    verb = "not executable" if is_start and places.lacks_exec_bit(name) else "permission denied"
    return "permission", f"{verb}: {places.shown(name)}"


def _check_key(_: Failure, output: Output, found: Found) -> Conclusion | None:
    if not frames.asks_environment(output.lines, found.line):
        return None
    return "script-error", f"environment variable not set: {found.words['key'].strip(chr(39))}"


def _check_python_module(failure: Failure, _: Output, found: Found) -> Conclusion | None:
    folder = failure.places.environment_with(found.words["module"])
    return ("script-error", f"{found.cause} (it is in {folder}, and the job ran another Python)") if folder else None


def _check_module(failure: Failure, _: Output, found: Found) -> Conclusion | None:
    """Node calls the file on its command line a module, too."""
    name = _name(found)
    return ("missing-file", f"missing file: {failure.places.shown(name)}") if name.startswith("/") else None


def _check_service(_: Failure, __: Output, found: Found) -> Conclusion | None:
    """A refused connection to this machine is a service that does not run, not the network."""
    where = found.words.get("where") or found.words.get("host") or ""
    return (found.sign.category, f"{found.cause} (a service on this machine)") if _LOCAL.search(where) else None


_CHECKS: dict[str, Callable[[Failure, Output, Found], Conclusion | None]] = {
    "command not found": _check_command,
    "ENOENT": _check_missing,
    "bad interpreter": _check_missing,
    "EACCES": _check_refused,
    "KeyError": _check_key,
    "ModuleNotFoundError": _check_python_module,
    "MODULE_NOT_FOUND": _check_module,
    "ECONNREFUSED": _check_service,
}


def _of_scripts(failure: Failure, output: Output) -> Conclusion | None:
    for line in output.err[:_MOST_LOOKS]:
        script = frames.script_of(line)
        conclusion = _of_script(failure, script) if script else None
        if conclusion is not None:
            return conclusion
    return None


def _of_words(failure: Failure, output: Output) -> Conclusion:
    ended = "no exit code is known" if failure.exit_code is None else f"exit code {failure.exit_code}"
    raised = frames.raised(output.lines)
    if raised is not None:
        place = frames.place_of(output.lines, raised, failure.places)
        said = output.lines[raised][:_MOST_QUOTED_CHARS]
        return "script-error", f"{said} in {place}" if place else said
    last = next((line for line in reversed(output.err) if line.strip()), output.last)
    said = _complaint(output.err) or _complaint(output.out) or last.strip()
    if said:
        return "script-error", f"{ended}: {said[:_MOST_QUOTED_CHARS]}"
    return "unknown", f"{ended}, no output: {exits.shortened(failure.command)}"


def _complaint(lines: list[str]) -> str | None:
    """The first line that reads like an error, without its time stamp."""
    text = "\n".join(lines)
    at = 0
    for _ in range(_MOST_LOOKS):
        match = _COMPLAINT.search(text, at)
        if match is None:
            return None
        start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        line = text[start : end if end >= 0 else len(text)]
        if not _NO_COMPLAINT.search(line):
            return _STAMP.sub("", line).strip()
        at = start + len(line)
    return None
