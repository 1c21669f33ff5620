"""How a command becomes a process: directly where it has no shell syntax, else through the shell."""

import functools
import re
import shlex

SHELL = "/bin/sh"

# Letters, digits and signs that mean themselves in every shell.  Anything else (quotes, globs, $, ~, <>|&;) is for
# the shell, and so is a leading assignment.
_PLAIN = re.compile(r"[\w@%+=:,./ -]+\Z", re.ASCII)
_BUILTINS = frozenset(
    [
        ".",
        ":",
        "[",
        "alias",
        "bg",
        "break",
        "cd",
        "command",
        "continue",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fg",
        "for",
        "getopts",
        "hash",
        "if",
        "case",
        "while",
        "until",
        "jobs",
        "local",
        "printf",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "source",
        "test",
        "times",
        "trap",
        "true",
        "type",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "wait",
        "echo",
        "time",
        "then",
        "do",
        "done",
        "fi",
        "esac",
        "function",
        "select",
    ]
)


@functools.lru_cache(maxsize=16_384)
def argv_of(command: str) -> tuple[tuple[str, ...], bool]:
    """The argument list of the command, and whether it is executed directly."""
    if _PLAIN.match(command):
        words = tuple(shlex.split(command))
        if words and "=" not in words[0] and words[0] not in _BUILTINS:
            return words, True
    return (SHELL, "-c", command), False
