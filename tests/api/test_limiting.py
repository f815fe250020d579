"""Limiting the rate of each client."""

import threading

import pytest

from app.api import limiting
from app.api.limiting import RateLimiter
from app.db import Database
from tests.support.api import Api, DrivenClock, assert_problem, make_api


@pytest.fixture
def limited(sqlite_database: Database, clock: DrivenClock) -> Api:
    """Three requests a minute."""
    return make_api(sqlite_database, clock, rate_limit="3/minute")


def test_who_asks_too_often_is_told_when_to_come_again(limited: Api, clock: DrivenClock) -> None:
    for _ in range(3):
        assert limited.get("/automations").status_code == 200
    clock.move(20.5)
    answer = limited.get("/automations")
    assert_problem(answer, 429, "too-many-requests")
    assert answer.headers["Retry-After"] == "40"
    clock.move(39.5)
    assert limited.get("/automations").status_code == 200


def test_each_token_has_a_limit_of_its_own(limited: Api) -> None:
    one = limited.as_(limited.post("/tokens", {"name": "x", "role": "viewer"}).json["token"])
    two = limited.as_(limited.post("/tokens", {"name": "x", "role": "viewer"}).json["token"])
    for caller in (one, two):
        for _ in range(3):
            assert caller.get("/automations").status_code == 200
        assert caller.get("/automations").status_code == 429


def test_guessing_tokens_is_limited_by_address(limited: Api) -> None:
    for number in range(3):
        assert limited.as_("bell_" + f"{number:043}").get("/automations").status_code == 401
    assert limited.as_("bell_" + "x" * 43).get("/automations").status_code == 429
    assert limited.as_(None).get("/automations").status_code == 429
    assert limited.as_(None).get("//docs").status_code == 429
    assert limited.get("/automations").status_code == 200


def test_supervisors_are_never_told_to_come_again(limited: Api) -> None:
    anyone = limited.as_(None)
    for _ in range(10):
        for path in ("//healthz", "//readyz", "//metrics"):
            assert anyone.get(path).status_code == 200


def test_without_the_setting_there_is_no_limit(api: Api) -> None:
    assert all(api.get("/automations").status_code == 200 for _ in range(50))


@pytest.mark.parametrize(
    ("rate", "seconds"), [("1/second", 1), ("1/minute", 60), ("1/hour", 3600), ("1/day", 86_400)]
)
def test_every_unit(rate: str, seconds: int, clock: DrivenClock) -> None:
    limiter = RateLimiter(rate, clock)
    assert limiter.wait("a") is None
    assert limiter.wait("a") == seconds
    clock.move(seconds)
    assert limiter.wait("a") is None


def test_many_clients_do_not_fill_the_memory(
    clock: DrivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiting, "_CLIENTS_AT_MOST", 10)
    limiter = RateLimiter("1/minute", clock)
    for number in range(100):
        assert limiter.wait(str(number)) is None
        assert len(limiter._windows) <= 10
        clock.move(1)


def test_threads_do_not_get_more_together(clock: DrivenClock) -> None:
    limiter = RateLimiter("100/minute", clock)
    allowed: list[bool] = []

    def ask() -> None:
        for _ in range(100):
            allowed.append(limiter.wait("a") is None)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert allowed.count(True) == 100
