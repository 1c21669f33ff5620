"""A missing output folder: writes that really fail, and reads and other places that stay as they are."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.breaking import case_of, picture, repair, run, verdict_on
from support.writing import write

from heal.playbook.book import look
from heal.playbook.mounts import awaits_disk

pytestmark = pytest.mark.mission("B4")

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@pytest.mark.parametrize(
    ("setup", "command", "made"),
    [
        ("", "python3 -c \"open('out/day/report.txt', 'w').write('x')\"", "out/day"),
        ("", "echo x > 'results ä/today.txt'", "results ä"),
        ("", "echo x >> out/a/b/c.txt", "out/a/b"),
        ("", "bash -c 'echo x &> \"it is/log\"'", "it is"),
        ("", "bash -c 'D=reports; echo x > \"$D/$(date +%F).txt\"'", "reports"),
        ("mkdir work", "cd work && echo x > out/x.txt", "work/out"),
        ("mkdir work", "cd work && echo x > ../out/x.txt", "out"),
        ("touch a.txt", "cp a.txt backup/a.txt", "backup"),
        ("touch a.txt", "cp a.txt backup/", "backup"),
        ("touch a.txt", "mv a.txt old/a.txt", "old"),
        ("touch a.txt", "ln -s ../a.txt 'li nks/a'", "li nks"),
        ("touch a.txt", "install -m 600 a.txt safe/a.txt", "safe"),
        ("mkdir src; touch src/f", "tar -cf dist/all.tar src", "dist"),
        ("mkdir src; touch src/f", "tar czf dist/all.tgz src", "dist"),
        ("touch f; tar -cf a.tar f", "tar -xf a.tar -C unpacked", "unpacked"),
        ("", "bash -o pipefail -c 'echo x | tee logs/run.log'", "logs"),
        ("touch f", "sort -o sorted/f f", "sorted"),
        ("touch f", "dd if=f of=images/f status=none", "images"),
        ("", "mkdir a/b", "a"),
        ("", "touch marks/done", "marks"),
        ("", "python3 -c \"from pathlib import Path; Path('stats/x.json').write_text('1')\"", "stats"),
    ],
)
def test_a_missing_output_folder_is_made(project: Path, setup: str, command: str, made: str) -> None:
    subprocess.run(["/bin/sh", "-c", setup or ":"], cwd=project, check=True)

    verdict = repair(project, command)

    assert (verdict.rule, verdict.cause) == ("missing_folder", f"missing output folder: {made}")
    assert (project / made).is_dir()


@pytest.mark.parametrize(
    "program",
    [
        "with open('out/ä b/r.csv', 'w') as file:\n    file.write('x')\n",
        "import csv\nwith open(\n    'out/ä b/r.csv',\n    'a',\n) as file:\n    csv.writer(file)\n",
        "import gzip\ngzip.open('out/ä b/r.gz', 'wt').close()\n",
        "import zipfile\nzipfile.ZipFile('out/ä b/r.zip', 'w').close()\n",
        "import tarfile\ntarfile.open('out/ä b/r.tgz', 'w:gz').close()\n",
        "import logging\nlogging.basicConfig(filename='out/ä b/run.log')\n",
        "from pathlib import Path\nPath('out/ä b/mark').touch()\n",
        "from pathlib import Path\nwith Path('out/ä b/r').open('wb') as file:\n    file.write(b'x')\n",
        "import os\nopen('r', 'w').close()\nos.replace('r', 'out/ä b/r')\n",
        "import shutil\nopen('r', 'w').close()\nshutil.copy('r', 'out/ä b/r')\n",
        "def save(path):\n    with open(path, mode='w', encoding='utf-8') as file:\n        pass\nsave('out/ä b/r')",
        "import os\nos.mkdir('out/ä b/run-1')\n",
    ],
)
def test_a_python_program_that_writes_is_repaired(project: Path, program: str) -> None:
    write(project, "job/report.py", program)

    verdict = repair(project, "python3 job/report.py")

    assert verdict.cause == "missing output folder: out/ä b"


@needs_node
@pytest.mark.parametrize(
    "program",
    [
        "require('fs').writeFileSync('out/x', '1')",
        "require('fs').appendFileSync('out/x', '1')",
        "require('fs').createWriteStream('out/x').end('1')",
        "require('fs').promises.writeFile('out/x', '1')",
        "require('fs').copyFileSync('job.js', 'out/x')",
        "require('fs').mkdirSync('out/x')",
    ],
)
def test_a_node_program_that_writes_is_repaired(project: Path, program: str) -> None:
    write(project, "job.js", program)

    assert repair(project, "node job.js").cause == "missing output folder: out"


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/bash\nset -e\necho x > out/night.txt\n",
        '#!/bin/sh\nset -e\nOUT=out\nexec >"$OUT/night.txt"\necho x\n',
        '#!/bin/bash\nset -e\ncd "$(dirname "$0")"/..\ncat <<END >> out/night.txt\nx\nEND\n',
        "#!/bin/bash\nset -e\nwhile read -r x; do echo $x; done < bin/night.sh > out/night.txt\n",
        '#!/bin/bash\nset -e\nHERE=$(cd "$(dirname "$0")" && pwd)\necho x > "$HERE/../out/night.txt"\n',
    ],
)
def test_a_script_that_redirects_into_a_missing_folder_is_repaired(project: Path, script: str) -> None:
    write(project, "bin/night.sh", script)

    assert repair(project, "bin/night.sh").cause == "missing output folder: out"


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c \"open('in/data.csv')\"",
        "python3 -c \"open('in/data.csv', 'rb')\"",
        "python3 -c \"open('in/data.csv', 'r+')\"",
        "python3 reads.py",
        "python3 copies.py",
        "python3 moves.py",
        "python3 goes.py",
        "cat in/data.csv",
        "sh -c 'sort < in/list.txt > sorted.txt'",
        "bash -c 'while read x; do :; done < in/list.txt'",
        "bash -c 'in/tool > log.txt'",
        "bash -c '. in/env.sh > log.txt'",
        'bash -c \'read x < "$0/list"; echo > "$0/out"\' in',
        "bash -c 'x=$1; cat < $x' sh in/list",
        "cp in/a.txt out/a.txt",
        "mv in/a.txt out/a.txt",
        "tar -xf in/all.tar",
        "tar xzf in/all.tgz -C .",
        "tar -cf all.tar -C in .",
        "dd if=in/data of=x status=none",
        "python3 -c \"open('/nosuchplace/out/x', 'w')\"",
        "echo x > ../sibling/out.txt",
        "echo x > missing/../../sibling/out.txt",
        "python3 -c \"open('file.txt/x', 'w')\"",
        "echo x > file.txt/out/x",
        "echo x > disk/out/x.txt",
        "echo x > way/out/x.txt",
        "echo x > .git/hooks/new/x",
        "mountpoint -q stick; echo x > stick/day/x.txt",
    ],
)
def test_other_missing_paths_stay_missing(project: Path, command: str) -> None:
    write(project, "file.txt", "x\n", mode=0o644)
    write(project, "reads.py", "text = open('in/data.csv').read()\nopen('out/x', 'w').write(text)\n")
    write(project, "copies.py", "import shutil\nshutil.copy('in/data.csv', 'copy.csv')\n")
    write(project, "moves.py", "import os\nos.rename('in/data.csv', 'out/data.csv')\n")
    write(project, "goes.py", "import os\nos.chdir('file.d')\nopen('out/x', 'w')\n")
    write(project, ".git/hooks/x", "", mode=0o644)
    (project / "file.d").mkdir()
    (project / "stick").mkdir()
    (project / "disk").symlink_to("/nosuchdisk")
    (project / "way").symlink_to(project.parent / "beside")
    (project.parent / "beside").mkdir()
    subprocess.run(["/bin/sh", "-c", f"{command} >/dev/null 2>&1; :"], cwd=project, check=True)
    before, beside = picture(project), set(picture(project.parent))

    verdict = verdict_on(project, command)

    assert verdict is None or verdict.repair is None
    assert picture(project) == before
    logs = {path for path in picture(project.parent) if f"{project.name}.logs" in path}
    assert set(picture(project.parent)) - logs == beside


@pytest.mark.parametrize(
    ("there", "written", "is_made"),
    [
        ("output", "ouput", False),
        ("report", "reports", False),
        ("Reports", "reports", False),
        ("2025-11", "2025-12", True),
        ("run9", "run8", True),
        ("run", "run2", True),
        ("in", "on", True),
        ("input", "output", True),
    ],
)
def test_a_folder_that_seems_mistyped_or_renamed_is_left_to_others(
    project: Path, there: str, written: str, *, is_made: bool
) -> None:
    (project / there).mkdir()

    verdict = verdict_on(project, f"echo x > {written}/x.txt")

    assert (verdict is not None and verdict.repair is not None) == is_made


def test_a_hidden_place_gets_no_folder(project: Path) -> None:
    (project / "data").mkdir()
    failure, began = run(project, "echo x > data/out/x")
    case, _ = case_of(failure, project, began)

    verdict = look(type(case).from_json({**case.to_json(), "forbidden": [str(project / "data")]}))

    assert verdict is None or verdict.repair is None


def test_a_message_that_a_program_only_prints_makes_no_folder(project: Path) -> None:
    write(project, "log.sh", "echo 'yesterday: line 3: out/x: No such file or directory' >&2; exit 1\n")
    before = picture(project)

    verdict = verdict_on(project, "sh log.sh")

    assert verdict is None
    assert picture(project) == before


def test_a_place_that_waits_for_its_disk_is_known(tmp_path: Path) -> None:
    table, units = tmp_path / "fstab", tmp_path / "units"
    table.write_text(f"# /ignored\nUUID=1 / ext4 x 0 1\n/dev/x {tmp_path}/my\\040disk ext4 noauto 0 0\n")
    write(units, "usb.mount", f"[Mount]\nWhat=/dev/y\nWhere={tmp_path}/usb\n")

    answers = [awaits_disk(tmp_path / name, table, units) for name in ("my disk/out", "usb/a/b", "other", "my", "usb2")]

    assert answers == [True, True, False, False, False]


@pytest.mark.mission("B8")
def test_a_folder_that_is_there_by_now_is_left_alone(project: Path) -> None:
    verdict = verdict_on(project, "echo x > out/day/x.txt")
    assert verdict
    assert verdict.repair
    write(project, "out/mine.txt", "by the person\n")
    before = picture(project)

    with pytest.raises(ValueError, match="out exists by now"):
        verdict.repair.apply()

    assert picture(project) == before
