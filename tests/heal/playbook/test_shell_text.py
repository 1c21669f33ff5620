"""Shell text as commands; what bash makes of the same text is the measure."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heal.playbook.shell_text import UNKNOWN, read_shell

pytestmark = pytest.mark.mission("B4")


@pytest.mark.parametrize(
    "text",
    [
        "p a 'b c' \"d e\" f\\ g",
        'p "a \\" \\$ \\` \\\\ \\n" \'x\\n\'',
        "p a'b'\"c\"d '' \"\"",
        "p a#b # a comment",
        "p 'it'\\''s'",
        'X=1; Y="$X 2"; p "$Y" ${X}3',
        "X=1; export Z=$X/2; p $Z",
        "p one; p two && p three",
        "p one | cat; (p two); { p three; }",
        "if true; then p yes; fi; ! p no; while ! p once; do :; done",
        "for x in 1; do p loop; done",
        "p a \\\n  b\np c",
        "p 'two\nlines' end; p \"two\nmore\"",
        "cat <<'END' >/dev/null\np not\nEND\np after",
        "cat <<-END >/dev/null\n\tp not\n\tEND\np after",
        "cat <<A >/dev/null; p same line\np not\nA\np after",
        "p 1 2>/dev/null; p 2 >/dev/null; p 3 </dev/null; p 4 2>&1; p 5 >&2; p 6 >>/dev/null 7",
        "p 1 &>/dev/null; p 2 <<<words; p $((1 + 2)) x; p last",
        'p "$(p inner)"; p last',
        "p `p inner`; p ${HOME:-x}; p ${X%/*}; p last",
        "case x in x) p yes;; esac",
    ],
)
def test_words_are_what_bash_makes_of_them(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log"
    program = f'p() {{ printf "%s\\0" "$@" END >> "$LOG"; }}\n{text}'
    subprocess.run(["bash", "-c", program], check=True, capture_output=True, env={"LOG": str(log), "PATH": "/bin"})
    called = [call.split("\0")[:-1] for call in log.read_text().split("END\0")[:-1]]

    commands = [list(command.words[1:]) for command in read_shell(text).commands if command.words[:1] == ("p",)]

    assert len(commands) == len(called)
    assert [words for words in commands if UNKNOWN not in "".join(words)] == [
        theirs for ours, theirs in zip(commands, called, strict=True) if UNKNOWN not in "".join(ours)
    ]


@pytest.mark.parametrize(
    ("text", "outputs", "inputs"),
    [
        ("a > x 2>> 'y z' < in", ("x", "y z"), ("in",)),
        ("a >| x &> y; ", ("x", "y"), ()),
        ("a 2>&1 >&- <&3 <<<word", (), ()),
        ("D=out; a > $D/x.txt", ("out/x.txt",), ()),
        ('a > "$D/x-$(date).txt"', (f"{UNKNOWN}/x-{UNKNOWN}.txt",), ()),
        ("D=a; D=b; a > $D/x", (f"{UNKNOWN}/x",), ()),
        ("a > *.txt", (f"{UNKNOWN}.txt",), ()),
    ],
)
def test_redirections_are_told_apart(text: str, outputs: tuple[str, ...], inputs: tuple[str, ...]) -> None:
    command = next(command for command in read_shell(text).commands if command.words[:1] == ("a",))

    assert (command.outputs, command.inputs) == (outputs, inputs)


def test_lines_of_data_are_no_code() -> None:
    text = "#!/bin/sh\ncat <<E\ndata\ndata\nE\nX='one\ntwo\nthree'\n# it's a comment\nlast"

    assert read_shell(text).code_lines == {0, 1, 4, 7, 8, 9}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab '\"\\$`(){}<>|&;#\n\r\t=.*[]!~0%/", max_size=60))
def test_any_text_is_read_to_an_end(text: str) -> None:
    shell = read_shell(text)

    assert max(shell.code_lines, default=0) <= text.count("\n")
