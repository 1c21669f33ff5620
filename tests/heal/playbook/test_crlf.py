"""CRLF line endings: really broken scripts of many shapes, and near misses that stay byte for byte."""

from pathlib import Path

import pytest
from support.breaking import picture, repair, verdict_on
from support.writing import crlf, write

pytestmark = pytest.mark.mission("B4")


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("run.sh", "#!/bin/sh\necho a\n", "./run.sh"),
        ("run.sh", "#!/bin/sh\necho a\n", "exec ./run.sh"),
        ("bin/deep er/täsk", "#!/usr/bin/env bash\nset -e\nfor x in 1 2; do\n  echo $x\ndone\n", "'bin/deep er/täsk'"),
        ("loop.sh", "for x in 1 2; do\n  echo $x\ndone\n", "sh loop.sh"),
        ("loop.sh", "while read -r x; do\n  echo $x\ndone </dev/null\n", "sh < loop.sh"),
        ("strict.sh", "#!/bin/bash\nset -euo pipefail\necho ok\n", "env LC_ALL=C nice -n 5 bash -e ./strict.sh now"),
        ("strict.sh", "set -o pipefail\necho ok\n", "timeout -k 5 20 bash -e strict.sh"),
        ("fn.bash", "#!/bin/bash\nif true; then\n  echo yes\nfi\n", "bash fn.bash | cat; bash fn.bash"),
        ("end.sh", "echo done\nexit 0\n", "sh -c 'bash end.sh'"),
        ("tool", "#!/usr/bin/python3\nprint('x')\n", "./tool"),
        ("tool.pl", "#!/usr/bin/perl\nprint 1;\n", "echo start && ./tool.pl"),
        ("in/x.sh", "#!/bin/sh\ncd . \ntrue\n", "cd in && ./x.sh"),
        ("silent.sh", "#!/bin/sh\ntrue\n", "nice -n 5 timeout -k 5 30 ./silent.sh >/dev/null 2>&1"),
    ],
)
def test_crlf_is_repaired(project: Path, name: str, text: str, command: str) -> None:
    script = write(project, name, crlf(text))

    verdict = repair(project, command)

    assert (verdict.rule, verdict.cause) == ("crlf", f"CRLF line endings: {name}")
    assert script.read_bytes() == text.encode()
    assert script.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("outer", "inner", "text"),
    [
        ("#!/bin/sh\n./lib/inner.sh\n", "lib/inner.sh", "#!/bin/sh\necho in\n"),
        ("#!/bin/bash\nset -e\n. lib/env.sh\necho $A\n", "lib/env.sh", "export A=1\ntrue\n"),
        ('#!/bin/bash\ncd "$(dirname "$0")"\nbash steps/two.sh\n', "steps/two.sh", "if true; then\n  echo x\nfi\n"),
        (
            '#!/bin/bash\nHERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n"$HERE/a b/tool"\n',
            "a b/tool",
            "#!/bin/sh\ntrue\n",
        ),
        ('#!/bin/sh\nLIB=lib\nout=$("$LIB/now.sh") || exit 3\necho "$out"\n', "lib/now.sh", "#!/bin/sh\necho now\n"),
        ("#!/bin/sh\n(cd lib && ./x.sh)\n", "lib/x.sh", "#!/bin/sh\ntrue\n"),
    ],
    ids=["run", "sourced", "own folder", "own folder in a variable", "substituted", "subshell"],
)
def test_crlf_one_script_deeper_is_repaired(project: Path, outer: str, inner: str, text: str) -> None:
    write(project, "outer.sh", outer)
    script = write(project, inner, crlf(text))

    repair(project, "./outer.sh")

    assert script.read_bytes() == text.encode()


def test_all_scripts_that_the_command_runs_are_mended_together(project: Path) -> None:
    for name, text in (("a.sh", "#!/bin/sh\n./b.sh\n"), ("b.sh", "#!/bin/sh\ntrue\n"), ("other.sh", "true\n")):
        write(project, name, crlf(text))
    # The command to start the next one is only readable without the CR.
    write(project, "a.sh", b"#!/bin/sh\r\nexec ./b.sh\r\n")

    verdict = repair(project, "./a.sh")

    assert verdict.repair
    assert verdict.repair.paths == ("a.sh", "b.sh")
    assert b"\r\n" in (project / "other.sh").read_bytes()


def test_a_here_document_of_a_crlf_script_is_mended_with_it(project: Path) -> None:
    text = "#!/bin/sh\ncat <<'END'\none\nEND\nif true; then echo x; fi\n"
    script = write(project, "x.sh", crlf(text))

    repair(project, "sh x.sh")

    assert script.read_bytes() == text.encode()


MOSTLY_DATA = b"#!/bin/sh\ncat <<'END'\n" + b"row,of,data\r\n" * 40 + b"END\nnosuchcommand\nexit 127\n"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (b"#!/bin/sh\nprintf 'a\r\nb\r\n' >/dev/null\nnosuchcommand\n", "./x"),
        (b"#!/bin/sh\ncat <<'END'\none\r\ntwo\r\nEND\nexit 127\n", "./x"),
        (MOSTLY_DATA, "./x"),
        (b"#!/bin/sh\nDATA='" + b"row\r\n" * 40 + b"'\nnosuchcommand\n", "./x"),
        (b"#!/usr/bin/python3\nprint('fine')\r\nraise SystemExit('not found')\r\n", "python3 x"),
        (crlf("import sys\nopen('no such file')\n"), "python3 x"),
        (crlf("import nosuchmodule\n"), "python3 x"),
        (b"#!/bin/sh\n" + bytes(range(256)) + b"\r\n", "./x"),
        (crlf("echo x\nnosuch\n").replace(b"echo", b"\0echo"), "sh x"),
        (b"\xef\xbb\xbf#!/bin/sh\r\ntrue\r\nfalse\r\n", "./x"),
    ],
    ids=[
        "quoted data",
        "here-document",
        "mostly a here-document",
        "mostly quoted",
        "python does not mind",
        "python without a first line",
        "python module",
        "binary",
        "NUL",
        "byte order mark",
    ],
)
def test_crlf_that_is_not_the_trouble_stays(project: Path, text: bytes, command: str) -> None:
    write(project, "x", text)
    before = picture(project)

    verdict = verdict_on(project, command)

    assert verdict is None or verdict.rule != "crlf"
    assert picture(project) == before


def test_a_crlf_file_that_is_only_read_stays(project: Path) -> None:
    write(project, "list.sh", crlf("one\ntwo\n"), mode=0o644)
    write(project, "run.sh", "#!/bin/sh\n# uses ./list.sh\ncat list.sh\necho 'see ./list.sh'\nnosuchcommand\n")
    before = picture(project)

    verdict = verdict_on(project, "./run.sh")

    assert verdict is None or verdict.repair is None
    assert picture(project) == before


def test_a_crlf_script_stays_when_the_failure_speaks_of_something_else(project: Path) -> None:
    write(project, "say.sh", crlf("echo hello\n"))
    before = picture(project)

    verdict = verdict_on(project, "sh say.sh; nosuchcommand")

    assert verdict is None or verdict.repair is None
    assert picture(project) == before


def test_a_crlf_script_that_is_read_and_not_started_stays_when_the_job_is_silent(project: Path) -> None:
    write(project, "say.sh", crlf("#!/bin/sh\necho hello\n"))
    before = picture(project)

    verdict = verdict_on(project, "sh say.sh >/dev/null; nosuchcommand 2>/dev/null")

    assert verdict is None or verdict.repair is None
    assert picture(project) == before


def test_crlf_outside_the_project_stays(project: Path) -> None:
    outside = write(project.parent, "elsewhere/run.sh", crlf("#!/bin/sh\ntrue\n"))
    (project / "link.sh").symlink_to(outside)

    for command in (f"'{outside}'", "./link.sh", "../elsewhere/run.sh"):
        verdict = verdict_on(project, command)
        assert verdict is None or verdict.repair is None

    assert b"\r" in outside.read_bytes()


def test_a_file_with_a_second_name_stays(project: Path) -> None:
    script = write(project, "run.sh", crlf("#!/bin/sh\ntrue\n"))
    (project.parent / "twin.sh").hardlink_to(script)

    verdict = verdict_on(project, "./run.sh")

    assert verdict is None or verdict.repair is None
    assert script.read_bytes() == (project.parent / "twin.sh").read_bytes() == crlf("#!/bin/sh\ntrue\n")


@pytest.mark.mission("B8")
@pytest.mark.parametrize("change", ["content", "another file", "gone", "link"])
def test_a_script_that_changed_since_is_left_alone(project: Path, change: str) -> None:
    script = write(project, "run.sh", crlf("#!/bin/sh\ntrue\n"))
    verdict = verdict_on(project, "./run.sh")
    assert verdict
    assert verdict.repair
    kept = write(project.parent, "kept.sh", crlf("#!/bin/sh\ntrue\n"))
    if change == "content":
        script.write_bytes(crlf("#!/bin/sh\necho changed by the person\n"))
    else:
        script.unlink()
    if change == "another file":
        write(project, "run.sh", crlf("#!/bin/sh\ntrue\n"))
    if change == "link":
        script.symlink_to(kept)
    before = picture(project)

    with pytest.raises(ValueError, match=r"run\.sh has changed"):
        verdict.repair.apply()

    assert picture(project) == before
    assert b"\r" in kept.read_bytes()


def test_a_repair_is_made_once(project: Path) -> None:
    write(project, "run.sh", crlf("#!/bin/sh\ntrue\n"))
    verdict = repair(project, "./run.sh")
    before = picture(project)

    assert verdict.repair
    with pytest.raises(ValueError, match="has changed"):
        verdict.repair.apply()

    assert picture(project) == before
