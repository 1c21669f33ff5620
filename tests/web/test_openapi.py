"""The CLI server keeps to its own description: every call with generated input, none ends in a server error."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    missing_required_header,
    positive_data_acceptance,
    unsupported_method,
)
from support.serving import Served

pytestmark = [pytest.mark.mission("L7"), pytest.mark.timeout(300)]

STARTS_SOMETHING = r"run_job|wake_jobs?|start_heal|sessions\.(start|send)|activate"
"""Calls that run what they are given; what is generated here is not to be run."""


PROFILE = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
NOT_SAID = [positive_data_acceptance, missing_required_header, unsupported_method, ignored_auth]
"""What a description cannot say (which phrases are schedules), and what tests/web/test_access.py is about."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("app"))
    served.start()
    words = ("--name", "there", "--command", "true", "--schedule", "0 0 1 1 *", "--no-healing")
    served.run("jobs", "run", served.run("jobs", "add", *words).out.strip())
    yield served
    served.close()


def test_every_call_is_answered_as_described(app: Served) -> None:
    headers = {"Authorization": f"Bearer {app.address['controlToken']}"}
    schema = schemathesis.openapi.from_url(f"{app.address['url']}/openapi.json", headers=headers)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    tried = [one for one in operations if not re.search(STARTS_SOMETHING, str(one.definition.raw["operationId"]))]

    for operation in tried:

        @settings(
            max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def answer(case: Case[Any]) -> None:
            case.call_and_validate(headers=headers, excluded_checks=NOT_SAID)

        answer()

    assert len(tried) > 30
    assert "a request failed" not in app.log()
