"""When automations fire next, and what expressions mean, over the API."""

from typing import Any

import pytest

from tests.support.api import Api, assert_problem, pointers

TRIGGERS = [
    {"type": "api", "id": "manual"},
    {"type": "schedule", "id": "b", "expression": "0 3 * * *"},
    {"type": "schedule", "id": "a", "enabled": False, "expression": "*/5 * * * *"},
]


def test_the_schedule_of_an_automation(api: Api) -> None:
    api.create(triggers=TRIGGERS)
    answer = api.get("/automations/nightly/schedule?count=2")
    assert answer.json["data"] == [
        {
            "id": "a",
            "enabled": False,
            "expression": "*/5 * * * *",
            "description": "Every 5 minutes",
            "next": [],
        },
        {
            "id": "b",
            "enabled": True,
            "expression": "0 3 * * *",
            "description": "At 03:00 UTC, every day",
            "next": ["2026-12-02T03:00:00Z", "2026-12-03T03:00:00Z"],
        },
    ]


def test_five_instants_unless_told_otherwise(api: Api) -> None:
    api.create(triggers=TRIGGERS)
    found = api.get("/automations/nightly/schedule").json["data"]
    assert len(found[1]["next"]) == 5


def test_no_schedule_no_entries(api: Api) -> None:
    api.create(triggers=[])
    assert api.get("/automations/nightly/schedule").json == {"data": []}
    assert_problem(api.get("/automations/gone/schedule"), 404, "not-found")


@pytest.mark.parametrize("count", ["0", "101", "x", ""])
def test_a_count_out_of_bounds_is_refused(api: Api, count: str) -> None:
    api.create()
    answer = api.get(f"/automations/nightly/schedule?count={count}")
    assert pointers(answer) == [("/count", "invalid")]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            {"expression": " 0  3 * * * ", "after": "2026-12-01T03:00:00Z", "count": 1},
            ("0 3 * * *", ["2026-12-02T03:00:00Z"]),
        ),
        (
            {"expression": "0 3 * * *", "after": "2026-12-01T02:59:59.999999999Z", "count": 1},
            ("0 3 * * *", ["2026-12-01T03:00:00Z"]),
        ),
        (
            {"expression": "0 3 * * *", "after": "2026-12-01T03:59:00+01:00", "count": 1},
            ("0 3 * * *", ["2026-12-01T03:00:00Z"]),
        ),
        (
            {"expression": "0 3 * * *", "after": None, "count": 1},
            ("0 3 * * *", ["2026-12-02T03:00:00Z"]),
        ),
        ({"expression": "0 0 31 2 *"}, ("0 0 31 2 *", [])),
        (
            {"expression": "0 0 1 1 *", "after": "9999-12-31T23:59:59Z"},
            ("0 0 1 1 *", []),
        ),
        (
            {"expression": "0 0 29 2 *", "after": "2096-03-01t00:00:00z", "count": 1},
            ("0 0 29 2 *", ["2104-02-29T00:00:00Z"]),
        ),
    ],
)
def test_a_preview(api: Api, question: Any, expected: tuple[str, list[str]]) -> None:
    answer = api.post("/cron/preview", question)
    assert answer.status_code == 200
    assert (answer.json["expression"], answer.json["next"]) == expected
    assert answer.json["description"]


def test_an_expression_that_never_fires_says_so(api: Api) -> None:
    answer = api.post("/cron/preview", {"expression": "0 0 31 2 *"})
    assert answer.status_code == 200
    assert answer.json["next"] == []
    assert answer.json["description"].startswith("Never")


@pytest.mark.parametrize(
    ("expression", "field", "said"),
    [
        ("60 * * * *", "minute", "60"),
        ("* 24 * * *", "hour", "24"),
        ("* * 32 * *", "day of month", "32"),
        ("* * * 13 *", "month", "13"),
        ("* * * * 9", "day of week", "9"),
        ("@daily", "expression", "0 0 * * *"),
        ("* * *", "expression", "3 fields"),
        ("", "expression", "empty"),
    ],
)
def test_what_is_no_expression_is_refused_with_field_and_reason(
    api: Api, expression: str, field: str, said: str
) -> None:
    answer = api.post("/cron/preview", {"expression": expression})
    document = assert_problem(answer, 422, "invalid-input")
    assert document["field"] == field
    assert document["errors"][0]["pointer"] == "/expression"
    assert said in document["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({}, [("/expression", "required")]),
        ([], [("", "type")]),
        ({"expression": 5}, [("/expression", "type")]),
        ({"expression": None}, [("/expression", "type")]),
        ({"expression": "* * * * *" + " " * 300}, [("/expression", "invalid")]),
        ({"expression": "* * * * *", "count": 0}, [("/count", "invalid")]),
        ({"expression": "* * * * *", "count": 101}, [("/count", "invalid")]),
        ({"expression": "* * * * *", "count": True}, [("/count", "invalid")]),
        ({"expression": "* * * * *", "count": 1.5}, [("/count", "invalid")]),
        ({"expression": "* * * * *", "count": None}, [("/count", "invalid")]),
        ({"expression": "* * * * *", "after": 5}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": ""}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": "2026-12-01"}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": "2026-12-01T03:00:00"}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": "2026-W01-1T03:00:00Z"}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": "2026-02-30T03:00:00Z"}, [("/after", "invalid")]),
        ({"expression": "* * * * *", "after": "2026-12-01T03:00:60Z"}, [("/after", "invalid")]),
        (
            {"expression": "* * * * *", "after": "0001-01-01T00:00:00+01:00"},
            [("/after", "invalid")],
        ),
        (
            {"expression": "* * * * *", "after": "9999-12-31T23:59:59-01:00"},
            [("/after", "invalid")],
        ),
        (
            {"expression": "x", "count": 0, "after": "x", "tz": "x"},
            [
                ("/after", "invalid"),
                ("/count", "invalid"),
                ("/expression", "invalid"),
                ("/tz", "unknown-field"),
            ],
        ),
    ],
)
def test_a_question_that_breaks_rules_is_refused(
    api: Api, question: Any, expected: list[tuple[str, str]]
) -> None:
    assert pointers(api.post("/cron/preview", question)) == expected
