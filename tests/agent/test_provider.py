"""Providers as they are: busy, out of reach, of another make; and the scripted one itself."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.claude_server import ClaudeServer, Fault, call, text
from support.session_bench import KEY
from support.talk import RESUME, Talk


@pytest.mark.mission("B11")
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_tried_again(status: int) -> None:
    with ClaudeServer([Fault(status=status)]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", "key refused")
    assert len(claude.requests) == 1


@pytest.mark.mission("B11")
@pytest.mark.parametrize("status", [429, 529])
def test_a_busy_provider_is_asked_again(status: int) -> None:
    with ClaudeServer([Fault(status=status, retry_after="0.01"), RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "done"
    assert len(claude.requests) == 2


@pytest.mark.mission("B11")
@pytest.mark.parametrize(
    ("status", "detail"), [(429, "RateLimitError 429: scripted"), (529, "OverloadedError 529: scripted")]
)
def test_a_provider_that_stays_busy_is_unavailable(status: int, detail: str) -> None:
    with ClaudeServer([Fault(status=status, retry_after="0.01")]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", detail)
    assert len(claude.requests) == 3


@pytest.mark.mission("B11")
def test_a_provider_that_cannot_be_reached_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    end = Talk(f"http://127.0.0.1:{port}").hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", "APIConnectionError")


@pytest.mark.mission("B11")
def test_a_reply_that_breaks_off_is_asked_for_again() -> None:
    with ClaudeServer([Fault(cut_off=True, blocks=(call("look"),)), RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert end["outcome"] == "done"
    assert [name for name, _given in talk.given] == ["resume_schedule"], "no half reply is acted on"


@pytest.mark.mission("B11")
def test_a_stream_that_breaks_off_is_asked_for_again() -> None:
    cut = Fault(cut_off=True, blocks=(text("x" * 200), call("look")))
    with ClaudeServer([[call("leak")], cut, RESUME]) as claude:
        talk = Talk(claude.url, provider={"stream": True})

        end = talk.hold()

    assert (end["outcome"], claude.refused) == ("done", [])
    assert [name for name, _given in talk.given] == ["leak", "resume_schedule"]
    assert claude.requests[1]["messages"] == claude.requests[2]["messages"]


@pytest.mark.mission("B11")
def test_a_stream_that_always_breaks_off_makes_the_provider_unavailable() -> None:
    with ClaudeServer([Fault(cut_off=True, blocks=(text("x" * 200), call("look")))]) as claude:
        talk = Talk(claude.url, provider={"stream": True})

        end = talk.hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", "the reply broke off")
    assert (talk.given, len(claude.requests)) == ([], 3)


def test_a_page_in_place_of_a_reply_makes_the_provider_unavailable() -> None:
    with ClaudeServer([Fault(page="<h1>Sign in</h1>")]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "provider_unavailable"
    assert end["detail"].startswith("the reply could not be understood")


def test_a_request_the_provider_refuses_is_told_in_its_own_words() -> None:
    with ClaudeServer([Fault(status=400)]) as claude:
        end = Talk(claude.url).hold()

    assert (end["outcome"], end["detail"]) == ("provider_unavailable", "BadRequestError 400: scripted")


@pytest.mark.mission("B9")
@pytest.mark.parametrize(
    ("given", "used"),
    [({}, KEY), ({"apiKey": None, "authToken": "local-token-1"}, "local-token-1")],
)
def test_exactly_the_given_credential_is_used(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], used: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-from-the-environment")
    with ClaudeServer([RESUME]) as claude:
        Talk(claude.url, provider=given).hold()

    (headers,) = claude.headers
    assert headers["authorization"] == f"Bearer {used}"
    assert "environment" not in json.dumps(headers)


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ClaudeServer([RESUME]) as claude:
        end = Talk(claude.url).hold()

    assert end["outcome"] == "done"


# What other servers do


def test_a_call_that_a_gateway_labels_as_the_end_is_done_all_the_same() -> None:
    with ClaudeServer([Fault(stop_reason="end_turn", blocks=(call("look"),)), RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert end["outcome"] == "done"
    assert [name for name, _given in talk.given] == ["look", "resume_schedule"]


def test_a_server_that_counts_no_tokens_is_good_enough() -> None:
    with ClaudeServer([Fault(has_usage=False, blocks=(call("look"),)), RESUME]) as claude:
        talk = Talk(claude.url)

        end = talk.hold()

    assert (end["outcome"], end["usage"]["inputTokens"]) == ("done", 1_000)
    assert talk.messages[1]["usage"] is None


def test_an_unknown_model_costs_nothing_that_could_be_told() -> None:
    with ClaudeServer([RESUME]) as claude:
        end = Talk(claude.url, provider={"model": "qwen3:30b"}).hold()

    assert end["usage"] == {"inputTokens": 1_000, "outputTokens": 100, "costUsd": 0.0}


# The scripted server itself


@pytest.mark.parametrize(
    ("messages", "wrong"),
    [
        ([{"role": "assistant", "content": "x"}], "roles must alternate"),
        (
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [call("look")]},
                {"role": "user", "content": "and?"},
            ],
            "were answered by []",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}]}],
            "tool_use ids [] were answered by ['toolu_9']",
        ),
        ([{"role": "user", "content": [{"type": "nonsense"}]}], "not a request of the Messages API"),
    ],
)
def test_the_scripted_server_refuses_what_the_real_one_would(messages: list[Any], wrong: str) -> None:
    with ClaudeServer([RESUME]) as claude:
        connection = http.client.HTTPConnection(urlsplit(claude.url).netloc, timeout=10)
        body = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages}

        connection.request("POST", "/v1/messages", json.dumps(body))

        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
    assert (answer.status, said["error"]["type"]) == (400, "invalid_request_error")
    assert wrong in said["error"]["message"]
