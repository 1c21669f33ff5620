"""A running app that has a key, and the scripted model that it talks to: `claude.play(…)` says what comes."""

from collections.abc import Iterator

import pytest
from support.claude_server import ClaudeServer, text
from support.serving import Served

KEY = "sk-ant-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def claude() -> Iterator[ClaudeServer]:
    with ClaudeServer([[text("Hello.")]]) as server:
        yield server


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, claude: ClaudeServer) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"), {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": claude.url})
    served.start()
    yield served
    served.close()
