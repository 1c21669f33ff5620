"""Shell text as simple commands: their words, what they are redirected to, and which lines are code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_NESTED = 20
# Stands in a word for what only the running shell knows.
UNKNOWN = "\0"
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})

_SELF = r"\"?\$(?:0|BASH_SOURCE|\{0\}|\{BASH_SOURCE(?:\[0\])?(?:[:-]+\$0)?\})\"?"
_REAL_SELF = rf"(?:{_SELF}|\"?\$\((?:readlink -f|realpath) (?:-- )?{_SELF}\)\"?)"
_DIRNAME = rf"dirname (?:-- )?{_REAL_SELF}"
_OWN_FOLDER = re.compile(
    rf"\s*(?:{_DIRNAME}|cd (?:-P |-- ){{0,2}}\"?\$\({_DIRNAME}\)\"?"
    r"(?: ?>/dev/null)?(?: ?2>&1)? ?(?:&&|;) ?pwd(?: -P)?)\s*"
)
_OWN_FOLDER_CUT = re.compile(r"(?:0|BASH_SOURCE(?:\[0\])?)%/\*")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_REDIRECTION = re.compile(r"\d*(?:&>>?|>>|>\||>&|<<<|<<-?|<&|<>|>|<)(?!\()")
_OPERATOR = re.compile(r";;&?|;&|&&|\|\||\|&|[;&|\n]|[<>]?\(|\)")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()#]+")
_GLOB = re.compile(r"[*?\[]|\{(?=\S)")
_BRACKETS = {
    "(": re.compile(r"\\.|'[^']*'|[()]", re.DOTALL),
    "{": re.compile(r"\\.|'[^']*'|[{}]", re.DOTALL),
}
_QUOTED = re.compile(r"[^\"\\$`]+")
_DESCRIPTOR = re.compile(r"\d*-?")
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done"})


@dataclass(frozen=True)
class Command:
    """A simple command.  `scope` names the subshells that it is in, the outermost first."""

    words: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    scope: tuple[int, ...] = ()


@dataclass
class Shell:
    """What was read.  `code_lines`: numbers, from 0, of the lines that do not end inside quotes or a here-document."""

    commands: list[Command] = field(default_factory=list)
    code_lines: set[int] = field(default_factory=set)


def read_shell(text: str, own_folder: str | None = None) -> Shell:
    """The commands of a script or a command line, without its carriage returns; as far as the quotes are closed."""
    reader = _Reader(text.replace("\r", ""), {"PWD": "."} | ({} if own_folder is None else {".": own_folder}))
    reader.read()
    return reader.shell


class _OpenQuoteError(Exception):
    """The text ends inside quotes, or is no shell text."""


class _Reader:
    def __init__(self, text: str, variables: dict[str, str], scope: tuple[int, ...] = ()) -> None:
        self.shell = Shell()
        self._text = text
        self._at = 0
        self._variables = variables
        self._scope = scope
        self._subshells = 0
        self._words: list[str] = []
        self._outputs: list[str] = []
        self._inputs: list[str] = []
        self._heredocs: list[tuple[str, bool]] = []

    def read(self) -> None:
        try:
            while self._at < len(self._text):
                self._step()
        except _OpenQuoteError:
            pass
        self._end_command()
        if self._at >= len(self._text):
            self.shell.code_lines.add(self._text.count("\n"))

    def _step(self) -> None:
        char = self._text[self._at]
        if char in " \t":
            self._at += 1
        elif char == "#":
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
        elif self._text.startswith("\\\n", self._at):
            self._end_line(self._at + 1)
        elif redirection := _REDIRECTION.match(self._text, self._at):
            self._at = redirection.end()
            self._redirect(redirection[0].lstrip("0123456789"))
        elif operator := _OPERATOR.match(self._text, self._at):
            self._operate(operator[0])
        else:
            self._words.append(self._word())

    def _operate(self, operator: str) -> None:
        self._end_command()
        if operator == "\n":
            self._end_line(self._at)
            return
        self._at += len(operator)
        if operator.endswith("("):
            if len(self._scope) >= MOST_NESTED:
                raise _OpenQuoteError
            self._subshells += 1
            self._scope = (*self._scope, self._subshells)
        elif operator == ")":
            self._scope = self._scope[:-1]

    def _end_line(self, newline: int) -> None:
        self.shell.code_lines.add(self._text.count("\n", 0, newline))
        self._at = newline + 1
        for delimiter, is_indented in self._heredocs:
            self._skip_heredoc(delimiter, is_indented=is_indented)
        self._heredocs.clear()

    def _skip_heredoc(self, delimiter: str, *, is_indented: bool) -> None:
        while self._at < len(self._text):
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line = self._text[self._at : end]
            self._at = end + 1
            if (line.lstrip("\t") if is_indented else line) == delimiter:
                self.shell.code_lines.add(self._text.count("\n", 0, end))
                return

    def _redirect(self, sign: str) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        if self._at >= len(self._text) or self._text[self._at] == "\n":
            return
        target = self._word()
        if sign in ("<<", "<<-"):
            self._heredocs.append((target, sign == "<<-"))
        elif sign == "<":
            self._inputs.append(target)
        elif sign not in ("<<<", "<&") and not (sign == ">&" and _DESCRIPTOR.fullmatch(target)):
            self._outputs.append(target)

    def _end_command(self) -> None:
        words = self._words
        while words and words[0] in _KEYWORDS:
            words = words[1:]
        if all(_ASSIGNMENT.match(word) for word in words):
            self._assign(words)
        if words and words[0] in ("export", "readonly", "local", "declare", "typeset"):
            self._assign(words[1:])
        if words or self._outputs or self._inputs:
            self.shell.commands.append(Command(tuple(words), tuple(self._outputs), tuple(self._inputs), self._scope))
        self._words, self._outputs, self._inputs = [], [], []

    def _assign(self, words: list[str]) -> None:
        for match in filter(None, map(_ASSIGNMENT.match, words)):
            # Set twice to different values, it may be either at any place.
            known = self._variables.get(match[1], match[2])
            self._variables[match[1]] = match[2] if known == match[2] else UNKNOWN

    def _word(self) -> str:
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        start = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if plain := _PLAIN.match(self._text, self._at):
                self._at = plain.end()
                yield _GLOB.sub(UNKNOWN, plain[0])
            elif char in "'\"\\":
                yield self._quoted(char)
            elif char in "$`":
                yield self._expansion()
            elif char == "#" and self._at > start:
                self._at += 1
                yield char
            else:
                break
        if self._at == start:
            self._at += 1  # a sign out of place: passed over, so that the reading goes on

    def _quoted(self, char: str) -> str:
        if char == "\\":
            self._at += 2
            escaped = self._text[self._at - 1 : self._at]
            return "" if escaped == "\n" else escaped
        if char == "'":
            return self._until("'", self._at + 1)
        self._at += 1
        return "".join(self._double_quoted())

    def _until(self, sign: str, start: int) -> str:
        end = self._text.find(sign, start)
        if end < 0:
            raise _OpenQuoteError
        self._at = end + len(sign)
        return self._text[start:end]

    def _double_quoted(self) -> Iterator[str]:
        while self._at < len(self._text):
            char = self._text[self._at]
            if plain := _QUOTED.match(self._text, self._at):
                self._at = plain.end()
                yield plain[0]
            elif char == '"':
                self._at += 1
                return
            elif char == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                self._at += 2
                yield {"\n": ""}.get(escaped, escaped if escaped in '"\\$`' else f"\\{escaped}")
            else:
                yield self._expansion()
        raise _OpenQuoteError

    def _expansion(self) -> str:
        start = self._text[self._at : self._at + 3]
        if start.startswith("`"):
            self._inside(self._until("`", self._at + 1))
            return UNKNOWN
        if start == "$((":
            self._until("))", self._at + 3)
            return UNKNOWN
        if start.startswith("$("):
            return self._substituted(self._balanced("("))
        return self._braced(self._balanced("{")) if start.startswith("${") else self._dollar()

    def _dollar(self) -> str:
        self._at += 1
        if self._text.startswith("'", self._at):
            self._until("'", self._at + 1)
            return UNKNOWN
        name = _NAME.match(self._text, self._at)
        if name is None:
            return "$"
        self._at = name.end()
        return self._variables.get(name[0], UNKNOWN)

    def _braced(self, inner: str) -> str:
        if _OWN_FOLDER_CUT.fullmatch(inner):
            return self._variables.get(".", UNKNOWN)
        return self._variables.get(inner, UNKNOWN) if _NAME.fullmatch(inner) else UNKNOWN

    def _substituted(self, inner: str) -> str:
        if _OWN_FOLDER.fullmatch(inner):
            return self._variables.get(".", UNKNOWN)
        if inner.strip() == "pwd":
            return "."
        self._inside(inner)
        return UNKNOWN

    def _inside(self, text: str) -> None:
        """A substitution runs commands too."""
        if len(self._scope) >= MOST_NESTED:
            raise _OpenQuoteError
        self._subshells += 1
        reader = _Reader(text, dict(self._variables), (*self._scope, self._subshells))
        reader.read()
        self.shell.commands += reader.shell.commands

    def _balanced(self, opening: str) -> str:
        """The text between the signs at this place; quotes inside it hide signs."""
        start, depth = self._at + 2, 1
        self._at = start
        for match in _BRACKETS[opening].finditer(self._text, start):
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(match[0], 0)
            if depth == 0:
                self._at = match.end()
                inner = self._text[start : self._at - 1]
                self._note_lines(start, self._at)
                return inner
        raise _OpenQuoteError

    def _note_lines(self, start: int, end: int) -> None:
        first = self._text.count("\n", 0, start)
        self.shell.code_lines.update(range(first, first + self._text.count("\n", start, end)))
