"""What a workflow is and sees, and what it may do with a batch."""

import asyncio
from typing import Any

import pytest

from bellringer import Connection, DefinitionError, Event, TriggerData, TriggerMeta, workflow
from tests.support.contexts import KeepingLogger


def data(items: list[Any], **more: Any) -> TriggerData:
    return TriggerData.of(items, logger=KeepingLogger(), **more)


def test_each_item_is_an_event_with_its_data_and_meta() -> None:
    seen = data([{"id": 1}, Event({"id": 2}, {"queue": "orders"})], attempt=2)
    assert [event.data for event in seen.data] == [{"id": 1}, {"id": 2}]
    assert [dict(event.meta) for event in seen.data] == [{}, {"queue": "orders"}]
    assert seen.meta == TriggerMeta(size=2, attempt=2)
    assert seen.connection is None


@pytest.mark.parametrize(
    ("items", "read"), [([], []), ([7], 7), ([[1]], [1]), ([1, 2], [1, 2]), ([None], None)]
)
def test_input_is_the_payload_of_the_one_event_or_the_list(items: list[Any], read: Any) -> None:
    assert data(items).input == read


def test_the_default_meta_of_an_event_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        Event(1).meta["x"] = 1  # type: ignore[index]


def test_a_workflow_calls_its_function() -> None:
    @workflow
    async def run(trigger: TriggerData) -> Any:
        return trigger.input

    @workflow
    def plain(trigger: TriggerData) -> Any:
        return trigger.input

    assert asyncio.run(run(data([5]))) == 5
    assert plain(data([6])) == 6


@pytest.mark.parametrize(
    ("run", "field", "rule"),
    [
        (lambda: None, "run", "takes one argument: trigger."),
        (5, "run", "is a function, async or plain."),
    ],
)
def test_a_workflow_is_a_function_of_one_argument(run: Any, field: str, rule: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        workflow(run)
    [fault] = caught.value.faults
    assert (fault.field, fault.rule) == (field, rule)
    assert caught.value.subject.startswith("workflow ")


def test_a_second_workflow_in_a_file_is_refused() -> None:
    source = """
from bellringer import workflow
@workflow
def one(trigger): ...
@workflow
def two(trigger): ...
"""
    with pytest.raises(DefinitionError, match=r"workflow two, .* defines a workflow already: one"):
        exec(source, {"__name__": "nightly"})


# --- connection ------------------------------------------------------------------------------------


def test_a_connection_calls_the_authors_functions_async_or_plain() -> None:
    done: list[Any] = []

    async def park(error: object) -> None:
        done.append(("parked", error))

    connection = Connection(
        commit=lambda: done.append("committed"), move_to_dlq=park, lag=lambda: 3, raw="client"
    )

    async def scenario() -> int | None:
        await connection.commit()
        await connection.move_to_dlq()
        await connection.move_to_dlq("broken")
        return await connection.lag()

    assert asyncio.run(scenario()) == 3
    assert done == ["committed", ("parked", None), ("parked", "broken")]
    assert connection.raw == "client"


def test_an_error_of_a_connections_function_reaches_the_workflow() -> None:
    def commit() -> None:
        raise OSError("gone")

    connection = Connection(commit, lambda error: None, lambda: None)
    with pytest.raises(OSError, match="gone"):
        asyncio.run(connection.commit())


@pytest.mark.parametrize("missing", ["commit", "move_to_dlq", "lag"])
def test_all_three_functions_are_required(missing: str) -> None:
    functions: dict[str, Any] = dict.fromkeys(("commit", "move_to_dlq", "lag"), print)
    with pytest.raises(TypeError, match=f"Connection: {missing} is a function"):
        Connection(**{**functions, missing: None})
    del functions[missing]
    with pytest.raises(TypeError, match=missing):
        Connection(**functions)
