"""The conversation with Claude: the real SDK against a scripted Messages API over HTTP."""

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.session_bench import KEY, wait_until
from support.talk import LEAK, RESUME, Talk, results

from agent.claude import GO_ON
from heal.tools import REMINDER
from store.redaction import MARK


@pytest.mark.mission("O5")
@pytest.mark.parametrize("stream", [False, True])
def test_a_repair_ends_with_the_schedule_resumed(*, stream: bool) -> None:
    looking = [text("I look at it."), call("look", at="orders.json", deep={"lines": [1, 2]})]
    with ClaudeServer([looking, RESUME]) as claude:
        talk = Talk(claude.url, provider={"stream": stream})

        end = talk.hold()

    assert (end["outcome"], claude.refused) == ("done", [])
    assert talk.given[0] == ("look", {"at": "orders.json", "deep": {"lines": [1, 2]}})
    assert [line["role"] for line in talk.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert talk.messages[1]["content"] == looking
    assert talk.messages[1]["stopReason"] == "tool_use"
    assert talk.messages[1]["usage"]["input_tokens"] == 1_000
    assert end["usage"] == {"inputTokens": 2_000, "outputTokens": 200, "costUsd": pytest.approx(0.006)}


@pytest.mark.mission("O5")
@pytest.mark.parametrize("stream", [False, True])
def test_every_request_holds_the_whole_conversation(*, stream: bool) -> None:
    first = [text("I look."), call("look")]
    with ClaudeServer([first, RESUME]) as claude:
        talk = Talk(claude.url, provider={"stream": stream})

        talk.hold("the line endings were changed")

    start, second = claude.requests
    assert start["messages"][0]["content"][0]["text"].startswith("The job 'shop report' failed for good.")
    assert "the line endings were changed" in start["messages"][0]["content"][0]["text"]
    assert second["messages"][1] == {"role": "assistant", "content": first}
    assert results(second) == ["nothing new"]
    for body in claude.requests:
        assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
        assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        assert [tool["name"] for tool in body["tools"]][:2] == ["look", "leak"]
        assert body.get("stream", False) is stream
        assert not body.keys() & {"thread", "temperature", "cache_control"}
    assert "anthropic-beta" not in claude.headers[0]


def test_text_that_comes_slowly_is_passed_on_as_it_comes() -> None:
    said = "It reads a field that is no longer there, " * 6
    with ClaudeServer([Fault(blocks=(text(said),), drop_secs=0.04), RESUME]) as claude:
        talk = Talk(claude.url, provider={"stream": True})

        talk.hold()

    deltas = [line["text"] for line in talk.lines if line["type"] == "delta"]
    assert 1 < len(deltas) < 10
    assert said.startswith("".join(deltas))
    assert talk.messages[1]["content"] == [text(said)]


@pytest.mark.mission("O5")
def test_parallel_calls_are_done_in_order_and_answered_together() -> None:
    both = [call("look", n=1), call("fail", n=2), call("leak", n=3)]
    with ClaudeServer([both, RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], claude.refused) == ("done", [])
    assert [given for _name, given in talk.given[:3]] == [{"n": 1}, {"n": 2}, {"n": 3}]
    answered = claude.requests[1]["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in answered] == [block["id"] for block in both]
    assert [block.get("is_error", False) for block in answered] == [False, True, False]


@pytest.mark.filterwarnings("ignore:Tool 'sudo' not found")
def test_a_tool_that_does_not_exist_is_refused_and_the_model_goes_on() -> None:
    with ClaudeServer([[call("sudo")], RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "done"
    assert results(claude.requests[1]) == ["Error: Tool 'sudo' not found"]


@pytest.mark.mission("O7")
def test_giving_up_ends_it_with_the_reason() -> None:
    with ClaudeServer([[call("give_up", reason="renew the certificate")], RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], end["detail"]) == ("gave_up", "renew the certificate")
    assert len(claude.requests) == 1


# Ends without a fix


@pytest.mark.mission("O7")
def test_a_model_that_just_stops_is_reminded_once() -> None:
    with ClaudeServer([[text("All done.")], [text("Really.")], RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "no_resume"
    assert len(claude.requests) == 2
    assert claude.requests[1]["messages"][-1] == {"role": "user", "content": [text(REMINDER)]}


@pytest.mark.mission("O7")
@pytest.mark.parametrize("last_words", [[text("All done.")], []])
def test_a_reminded_model_can_still_finish(last_words: list[dict[str, Any]]) -> None:
    with ClaudeServer([[call("look")], lambda _body: last_words, RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], claude.refused) == ("done", [])
    assert text(REMINDER) in claude.requests[2]["messages"][-1]["content"]


@pytest.mark.mission("B11")
def test_nothing_is_asked_once_the_money_is_spent() -> None:
    with ClaudeServer([[call("look", n=n)] for n in range(9)]) as claude:
        end = Talk(claude.url, limits={"budgetUsd": 0.005}).hold()

    assert (end["outcome"], end["detail"]) == ("budget", "$0.005 were not enough")
    assert (len(claude.requests), end["usage"]["costUsd"]) == (2, pytest.approx(0.006))


@pytest.mark.mission("B11")
def test_nothing_is_asked_beyond_the_last_turn() -> None:
    with ClaudeServer([[call("look", n=n)] for n in range(9)]) as claude:
        talk = Talk(claude.url, limits={"turns": 3})

        end = talk.hold()

    assert (end["outcome"], end["detail"]) == ("budget", "3 turns were not enough")
    assert (len(claude.requests), len(talk.given)) == (3, 3)


@pytest.mark.mission("B11")
def test_the_wall_clock_ends_it() -> None:
    with ClaudeServer([Fault(slow_secs=30)]) as claude:
        end = Talk(claude.url, limits={"wallSecs": 0.5}).hold()

    assert (end["outcome"], end["detail"]) == ("budget", "the time for one heal is over")


@pytest.mark.mission("O7")
def test_a_stop_ends_it_in_the_middle_of_a_slow_reply() -> None:
    with ClaudeServer([[call("look")], Fault(slow_secs=30)]) as claude:
        talk = Talk(claude.url)

        def stop_in_mid_reply() -> None:
            wait_until(lambda: len(claude.requests) == 2)
            talk.wire.stopped.set()

        stopper = threading.Thread(target=stop_in_mid_reply)
        stopper.start()

        end = talk.hold()

        stopper.join()
    assert (end["outcome"], end["usage"]["inputTokens"]) == ("stopped", 1_000)


@pytest.mark.mission("B11")
@pytest.mark.parametrize(
    ("calls", "asked"),
    [
        (lambda _n: call("look"), 4),
        (lambda n: call("fail", n=n), 3),
    ],
)
def test_going_in_circles_ends_it(calls: Callable[[int], dict[str, Any]], asked: int) -> None:
    with ClaudeServer([[calls(n)] for n in range(9)]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], len(claude.requests)) == ("no_progress", asked)


def test_steps_that_differ_are_no_circle() -> None:
    turns: Sequence[Any] = [[call("look", n=n // 3)] for n in range(9)]
    with ClaudeServer([*turns, [call("fail")], [call("look")], [call("fail")], [call("fail")], RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "done"


@pytest.mark.mission("O7")
def test_a_refusal_ends_it_and_its_call_is_not_done() -> None:
    with ClaudeServer([Fault(stop_reason="refusal", blocks=(call("look"),))]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], talk.given) == ("model_refused", [])


@pytest.mark.mission("O5")
def test_half_a_call_is_never_done_and_the_model_goes_on() -> None:
    cut = Fault(stop_reason="max_tokens", blocks=(text("I write."), call("look", half="con")))
    with ClaudeServer([cut, RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], claude.refused) == ("done", [])
    assert [name for name, _given in talk.given] == ["resume_schedule"]
    assert claude.requests[1]["messages"][1:] == [
        {"role": "assistant", "content": [text("I write.")]},
        {"role": "user", "content": [text(GO_ON)]},
    ]


@pytest.mark.mission("O7")
def test_a_reply_that_is_cut_off_twice_fails() -> None:
    with ClaudeServer([Fault(stop_reason="max_tokens", blocks=(call("look"),))]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], talk.given, claude.refused) == ("failed", [], [])


def test_a_conversation_too_long_for_the_model_is_out_of_budget() -> None:
    with ClaudeServer([Fault(stop_reason="model_context_window_exceeded")]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "budget"


# Secrets


@pytest.mark.mission("B9")
@pytest.mark.parametrize("stream", [False, True])
def test_no_secret_leaves_whatever_a_tool_says(*, stream: bool) -> None:
    script = [[call("leak")], [call("fail")], [call("crash")], [text(f"I saw {KEY}"), call("look")], RESUME]
    with ClaudeServer(script) as claude:
        talk = Talk(claude.url, prompt=f"Evidence: {LEAK}", provider={"stream": stream})

        end = talk.hold(LEAK)

    assert end["outcome"] == "done"
    assert results(claude.requests[1]) == [f"the key is {MARK}"]
    assert results(claude.requests[3]) == ["The tool failed (RuntimeError)."]
    for out in (json.dumps(claude.requests), json.dumps(talk.lines), json.dumps(end)):
        assert KEY not in out
        assert MARK in out or out == json.dumps(end)


@pytest.mark.mission("B9")
def test_no_secret_is_in_the_words_of_an_error() -> None:
    with ClaudeServer([Fault(status=400, message=f"bad key {KEY}")]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", f"BadRequestError 400: bad key {MARK}")
