"""The calls on runs: start, list, read, cancel, run again."""

from collections.abc import Mapping
from typing import Any

from flask import Response, request
from flask_smorest import Blueprint

from app.api import documents
from app.api import parameters as given
from app.api.bodies import NO_BODY, read_optional_json
from app.api.calls import answer_of, body_of, call
from app.api.documents import answer, link_to_next
from app.api.problems import Refusal
from app.api.services import services
from app.errors import InvalidInput, NotFound, Violation
from app.runs.values import NO_INPUT, Run, RunFilter, idempotency_key_fault

blueprint = Blueprint("runs", __name__, description="What was started, and how it went.")

_FILTERS = (given.STATE, given.RUN_TRIGGER, given.SINCE, given.UNTIL)
_PAGE = (given.LIMIT, given.BEFORE)


@call(
    blueprint,
    "POST",
    "/automations/<automation_id>/runs",
    role="operator",
    parameters=[given.AUTOMATION_ID, given.IDEMPOTENCY_KEY],
    body=body_of("RunRequest", required=False),
    answers={
        200: answer_of("Run", "The run that the same key and body led to.", headers=["Location"]),
        201: answer_of("Run", "It is queued.", headers=["Location"]),
    },
    problems=[
        *("invalid-id", "invalid-header", "not-found"),
        *("api-trigger-disabled", "idempotency-key-reused"),
    ],
)
def start_run(automation_id: str) -> Response:
    """Start an automation by its API trigger.

    `input`, if given, becomes the run's one event. Send an `Idempotency-Key` to be able to repeat the
    call safely: for a day, the same key and body are answered with the same run.
    """
    given.require_automation_id(automation_id)
    key = request.headers.get("Idempotency-Key")
    if key is not None and (fault := idempotency_key_fault(key)):
        raise Refusal("invalid-header", fault, header="Idempotency-Key")
    opened = services().runs.open_api_run(
        automation_id, input=_input(read_optional_json()), idempotency_key=key
    )
    return _made(opened.run, 201 if opened.created else 200)


@call(
    blueprint,
    "GET",
    "/automations/<automation_id>/runs",
    role="viewer",
    parameters=[given.AUTOMATION_ID, *(p.documented() for p in (*_PAGE, *_FILTERS))],
    answers={200: answer_of("RunPage", "Runs, the newest first.", headers=["Link"])},
    problems=["invalid-id", "invalid-input", "not-found"],
)
def list_runs_of_automation(automation_id: str) -> Response:
    """List the runs of an automation.

    The newest first, also of an automation that is gone.
    """
    given.require_automation_id(automation_id)
    query = given.read_query(*_PAGE, *_FILTERS)
    known = services().runs.known_automation(automation_id)
    if not known and services().automations.revision(automation_id) is None:
        raise NotFound("automation", automation_id)
    return _page({**query, "automation": automation_id})


@call(
    blueprint,
    "GET",
    "/runs",
    role="viewer",
    parameters=[p.documented() for p in (*_PAGE, *_FILTERS, given.AUTOMATION)],
    answers={200: answer_of("RunPage", "Runs, the newest first.", headers=["Link"])},
    problems=["invalid-input"],
)
def list_runs() -> Response:
    """List runs.

    The newest first. `meta.total` is exact up to 10,000; beyond that it is null and `more` is true.
    """
    return _page(given.read_query(*_PAGE, *_FILTERS, given.AUTOMATION))


@call(
    blueprint,
    "GET",
    "/runs/<run_id>",
    role="viewer",
    parameters=[given.RUN_ID],
    answers={200: answer_of("Run", "The run.")},
    problems=["invalid-id", "not-found"],
)
def read_run(run_id: str) -> Response:
    """Read a run."""
    number = given.number_in_path("run", run_id)
    found = services().runs.get(number)
    if found is None:
        raise NotFound("run", number)
    return answer(documents.run(found))


@call(
    blueprint,
    "POST",
    "/runs/<run_id>/cancel",
    role="operator",
    parameters=[given.RUN_ID],
    answers={202: answer_of("Run", "It is canceled, or will be when its worker notices.")},
    problems=["invalid-id", "not-found", "run-finished"],
)
def cancel_run(run_id: str) -> Response:
    """Cancel a run.

    A worker notices within two seconds. Asking again is no error while the run has not ended.
    """
    number = given.number_in_path("run", run_id)
    return answer(documents.run(services().runs.request_cancel(number)), 202)


@call(
    blueprint,
    "POST",
    "/runs/<run_id>/rerun",
    role="operator",
    parameters=[given.RUN_ID],
    answers={201: answer_of("Run", "A new run is queued.", headers=["Location"])},
    problems=["invalid-id", "not-found", "run-not-finished"],
)
def rerun_run(run_id: str) -> Response:
    """Run something again that has ended.

    A new run of the same target and events; `rerun_of` names the earlier one.
    """
    return _made(services().runs.rerun(given.number_in_path("run", run_id)), 201)


def _input(body: Any) -> Any:
    if body is NO_BODY:
        return NO_INPUT
    if not isinstance(body, Mapping):
        raise InvalidInput([Violation("", "type", "The body is an object.")])
    if unknown := [name for name in body if name != "input"]:
        pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in unknown]
        detail = "There is no such field; known: input."
        raise InvalidInput([Violation(pointer, "unknown-field", detail) for pointer in pointers])
    return body.get("input", NO_INPUT)


def _page(query: Mapping[str, Any]) -> Response:
    where = RunFilter(
        automation=query["automation"],
        states=query["state"],
        trigger=query["trigger"],
        since=query["since"],
        until=query["until"],
    )
    page = services().runs.page(where, query["before"], query["limit"])
    meta: dict[str, Any] = {"total": page.total, "next": page.next_before}
    if page.total is None:
        meta["more"] = True
    response = answer({"data": [documents.run(run) for run in page.runs], "meta": meta})
    if page.next_before is not None:
        response.headers["Link"] = link_to_next(before=page.next_before)
    return response


def _made(run: Run, status: int) -> Response:
    return answer(documents.run(run), status, Location=f"/api/v1/runs/{run.id}")
