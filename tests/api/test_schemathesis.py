"""Schemathesis reads the OpenAPI document and looks for answers that it does not allow."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode

from app.db import Database
from app.factory import create_app
from app.settings import Settings
from tests.api.test_tokens import ROUTES
from tests.support.api import ADMIN, Api

CALLS = sorted(
    (method, path.replace("<", "{").replace(">", "}"))
    for method, path in ROUTES
    if not path.startswith("/static/")
)

schemathesis.openapi.format(
    "cron", st.sampled_from(["0 3 * * *", "*/5 9-17 * * MON-FRI", "0 0 L * *", "30 4 1,15 * *"])
)


@pytest.fixture
def app(sqlite_database: Database) -> Iterator[Flask]:
    """A server that has an automation with a history, and a run."""
    made = create_app(
        Settings(database_url=sqlite_database.url, admin_token=ADMIN), database=sqlite_database
    )
    api = Api(made)
    api.create()
    api.post("/automations/nightly/runs")
    return made


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_answer_is_one_that_the_document_allows(
    app: Flask, method: str, path: str, mode: GenerationMode
) -> None:
    config = SchemathesisConfig.from_dict(
        {
            "checks": {
                # Rules that a schema can't say (an id used twice) and conditions that don't hold.
                "positive_data_acceptance": {
                    "expected-statuses": ["2xx", "302", "304", "404", "409", "412", "422"]
                },
                "missing_required_header": {"expected-statuses": [400, 404, 428]},
                "negative_data_rejection": {"expected-statuses": ["4xx"]},
            },
        }
    )
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not takes_anything(operation):
        return

    @settings(
        max_examples=30,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode).filter(has_one_condition))
    def check(case: Any) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {ADMIN}"})

    check()


def takes_anything(operation: Any) -> bool:
    """Tell whether there is anything in a call that could be wrong."""
    raw = operation.definition.raw
    return bool(raw.get("parameters") or raw.get("requestBody"))


def has_one_condition(case: Any) -> bool:
    """Leave out what a document can't say: PUT takes one of its two headers."""
    return not {"If-Match", "If-None-Match"} <= set(case.headers or ())
