"""Schemathesis reads the OpenAPI document and looks for answers that it does not allow."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig

from app.db import Database
from app.factory import create_app
from app.settings import Settings
from tests.support.api import ADMIN, Api

schemathesis.openapi.format(
    "cron", st.sampled_from(["0 3 * * *", "*/5 9-17 * * MON-FRI", "0 0 L * *", "30 4 1,15 * *"])
)


@pytest.fixture
def schema(sqlite_database: Database) -> Any:
    """The document of a server that has an automation and a run, with its own token for every call."""
    app = create_app(
        Settings(database_url=sqlite_database.url, admin_token=ADMIN), database=sqlite_database
    )
    api = Api(app)
    api.create()
    api.post("/automations/nightly/runs")
    config = SchemathesisConfig.from_dict(
        {
            "headers": {"Authorization": f"Bearer {ADMIN}"},
            "checks": {
                # Rules that a schema can't say (ids used twice) and conditions that don't hold.
                "positive_data_acceptance": {
                    "expected-statuses": ["2xx", "304", "404", "409", "412", "422"]
                },
                "missing_required_header": {"expected-statuses": [400, 404, 428]},
                "negative_data_rejection": {"expected-statuses": ["4xx"]},
            },
        }
    )
    return schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)


lazy = schemathesis.pytest.from_fixture("schema")


@lazy.parametrize()
@settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_allows(case: Any) -> None:
    case.call_and_validate()
