"""Whatever a client sends, the server never breaks, and every answer is one that it describes."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.api import Api, if_match

BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TEXT = st.text(max_size=20) | st.sampled_from(
    ["", " ", "\x00", "0 3 * * *", "acme/shop", "main", "nightly", "manual", "api", "schedule"]
)
SCALAR = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
TRIGGER = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["api", "schedule", "bell"]) | JSON,
        "id": st.sampled_from(["a", "manual", "A"]) | JSON,
        "enabled": st.booleans() | JSON,
        "expression": st.sampled_from(["0 3 * * *", "0 0 31 2 *", "@daily", "* * * * *"]) | JSON,
    },
)
DEFINITION = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["fuzz", "fuzz-2", "No"]) | JSON,
        "revision": TEXT | JSON,
        "name": TEXT | JSON,
        "description": TEXT | JSON,
        "target": st.fixed_dictionaries(
            {},
            optional={
                "repository": st.sampled_from(["acme/shop", "acme"]) | JSON,
                "ref": st.sampled_from(["main", "a..b"]) | JSON,
                "workflow": st.sampled_from(["release", "../x"]) | JSON,
            },
        )
        | JSON,
        "triggers": st.lists(TRIGGER, max_size=4) | JSON,
    },
)
HOSTILE = st.binary(max_size=60) | st.text(max_size=60).map(
    lambda t: t.encode("utf-8", "surrogatepass")
)


def sent(value: Any) -> bytes:
    return json.dumps(value).encode()


@BOUNDED
@given(body=st.one_of(DEFINITION.map(sent), JSON.map(sent), HOSTILE))
def test_bodies_that_create(api: Api, body: bytes) -> None:
    assert api.post("/automations", raw=body).status_code in (201, 400, 409, 422)


@BOUNDED
@given(body=st.one_of(DEFINITION.map(sent), JSON.map(sent), HOSTILE))
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_bodies_that_change(api: Api, method: str, body: bytes) -> None:
    known = api.get("/automations/nightly")
    revision = known.json["revision"] if known.status_code == 200 else api.create()
    answer = api.call(method, "/automations/nightly", raw=body, headers=if_match(revision))
    assert answer.status_code in (200, 400, 422)
    current = api.get("/automations/nightly").json["revision"]
    assert answer.status_code == 200 or current == revision


@BOUNDED
@given(body=st.one_of(JSON.map(lambda v: sent({"input": v})), JSON.map(sent), HOSTILE))
def test_bodies_that_start_runs(api: Api, body: bytes) -> None:
    if api.get("/automations/nightly").status_code == 404:
        api.create()
    answer = api.post("/automations/nightly/runs", raw=body)
    assert answer.status_code in (201, 400, 422)


@BOUNDED
@given(
    body=st.fixed_dictionaries(
        {},
        optional={
            "expression": st.sampled_from(["* * * * *", "0 0 L * *"]) | JSON,
            "after": st.sampled_from(["2026-12-01T00:00:00Z", "9999-12-31T23:59:59Z"]) | JSON,
            "count": st.integers(-1, 101) | JSON,
        },
    )
)
def test_questions_about_expressions(api: Api, body: Any) -> None:
    assert api.post("/cron/preview", body).status_code in (200, 422)


@BOUNDED
@given(body=st.fixed_dictionaries({}, optional={"name": TEXT, "role": TEXT, "expires_at": JSON}))
def test_bodies_that_make_tokens(api: Api, body: Any) -> None:
    assert api.post("/tokens", body).status_code in (201, 422)


@BOUNDED
@given(
    value=st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=40),
    header=st.sampled_from(
        ["If-Match", "If-None-Match", "Idempotency-Key", "X-Request-Id", "Accept", "Content-Type"]
    ),
)
def test_headers(api: Api, header: str, value: str) -> None:
    for method, path in (
        ("GET", "/automations/gone"),
        ("PUT", "/automations/gone"),
        ("DELETE", "/automations/gone"),
        ("POST", "/automations/gone/runs"),
        ("GET", "/runs/1/log"),
    ):
        answer = api.call(method, path, headers={header: value})
        assert 400 <= answer.status_code < 500, (method, path)
