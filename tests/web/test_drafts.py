"""Create a job with AI: a sentence becomes the fields of a job, by Claude or by its words alone; nothing is saved."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.serving import Served

pytestmark = pytest.mark.mission("O15")

KEY = "sk-ant-canary-0123456789abcdef"


def test_without_a_key_the_words_are_read(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()

    found = served.json("jobs", "draft", f"Run `sh tidy.sh` every weekday at 9am in {tmp_path}")
    printed = served.run("jobs", "draft", "Run `sh tidy.sh` hourly in /no/such")

    assert found == {
        "draft": {
            "command": "sh tidy.sh",
            "project": str(tmp_path),
            "schedule": "every weekday at 9am",
            "name": "sh tidy.sh",
        },
        "by": "words",
        "notes": [],
    }
    assert printed.out == (
        "cronmend jobs add --command 'sh tidy.sh' --project /no/such --schedule hourly --name 'sh tidy.sh'\n"
    )
    assert "There is no folder /no/such" in printed.err
    assert served.json("jobs", "list") == []
    empty = served.run("jobs", "draft", " ")
    assert (empty.code, "text: is empty" in empty.err) == (2, True)


def test_claude_fills_in_what_the_words_do_not_say(serve: Callable[..., Served], tmp_path: Path) -> None:
    filled = call(
        "fill_in", name="Inbox digest", prompt="Summarise notes.txt.", schedule="daily at 7am", effects="none"
    )
    with ClaudeServer([[filled]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)
        served.run("projects", "add", str(tmp_path), "--name", "letters")

        found = served.json("jobs", "draft", f"a digest of my letters before breakfast, key {KEY}")

    assert (found["by"], found["notes"]) == ("claude", [])
    assert found["draft"] == {
        "name": "Inbox digest",
        "prompt": "Summarise notes.txt.",
        "schedule": "daily at 7am",
        "effects": "none",
    }
    assert served.json("jobs", "list") == []
    assert served.json("sessions", "list") == []
    (request,) = claude.requests
    assert "letters" in str(request["messages"])
    assert KEY not in str(request), "a key that was pasted by mistake is not sent on"


@pytest.mark.parametrize("turn", [Fault(status=529), [text("I would rather talk.")], [call("fill_in", schedule=7)]])
def test_when_claude_fails_the_words_are_read(serve: Callable[..., Served], turn: object) -> None:
    with ClaudeServer([turn]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)

        found = served.json("jobs", "draft", "run tidy.sh hourly")

    assert found["by"] == "words"
    assert found["draft"]["command"] == "tidy.sh"
    assert found["notes"] == ["Claude gave no answer in time; this is what the words alone say."]


def test_what_claude_makes_up_is_no_schedule(serve: Callable[..., Served]) -> None:
    with ClaudeServer([[call("fill_in", command="x", schedule="whenever", colour="red", effects="huge")]]) as claude:
        served = serve(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.url)

        found = served.json("jobs", "draft", "do x whenever")

    assert set(found["draft"]) == {"name", "command", "schedule"}
    assert "whenever" in found["notes"][0]
