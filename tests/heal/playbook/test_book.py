"""The book: one more file is one more rule, and a rule that fails breaks nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.breaking import ROOT, verdict_on
from support.writing import write

from heal.playbook.case import Case

pytestmark = pytest.mark.mission("B4")

# In a process of its own, with one more folder of rules, as a package may have.
ASK = """
import json, logging, sys
from heal import playbook
playbook.__path__.append(sys.argv[1])
from heal.playbook.book import look
from heal.playbook.case import Case
logging.basicConfig(level=logging.ERROR, format="%(message)s")
verdict = look(Case.from_json(json.loads(sys.argv[2])))
print(verdict.rule if verdict else None)
"""


def ask(folder: Path, case: Case) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(folder), json.dumps(case.to_json())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def rule(order: int, answer: str) -> str:
    name = f"rule_{order}"
    return (
        f"from heal.playbook.case import Verdict\nNAME = {name!r}\nORDER = {order}\n"
        f"def look(case):\n    return {answer.replace('NAME_', repr(name))}\n"
    )


TELLS = "Verdict('tell', NAME_, 'cause', 'explanation', 'step')"


def test_the_first_rule_in_order_that_answers_is_heard(project: Path) -> None:
    folder = project.parent / "rules"
    for name, text in (
        ("zz_first.py", rule(1, "None")),
        ("yy_second.py", rule(2, TELLS)),
        ("aa_third.py", rule(3, TELLS)),
        ("noun.py", "ORDER = 0\n"),
    ):
        write(folder, name, text)

    said, _ = ask(folder, Case(str(project), str(project), "false", "/bin", exit_code=1))

    assert said == "rule_2"


def test_a_rule_that_fails_is_passed_over_and_logged(project: Path) -> None:
    folder = project.parent / "rules"
    write(folder, "broken.py", rule(1, "1 / 0"))
    write(folder, "works.py", rule(2, TELLS))

    said, log = ask(folder, Case(str(project), str(project), "false", "/bin", exit_code=1))

    assert said == "rule_2"
    assert "[cron-heal] the rule rule_1 failed" in log
    assert "ZeroDivisionError" in log


def test_the_book_needs_the_standard_library_only() -> None:
    ask_modules = (
        "import sys; before = set(sys.modules); from heal.playbook import book; book._rules();"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )

    done = subprocess.run([sys.executable, "-c", ask_modules], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["heal"]


def test_a_case_survives_its_way_as_json() -> None:
    case = Case("/p", "/p/x", "./é.sh", "/bin", exit_code=1, stderr_tail="x\ny", forbidden=("/p/a", "/p/b"))

    again = Case.from_json(json.loads(json.dumps(case.to_json())))

    assert again == case


def test_the_book_is_silent_on_what_it_does_not_know(project: Path) -> None:
    write(project, "w.py", "total = {}['sum']\n")

    assert verdict_on(project, "python3 w.py") is None
