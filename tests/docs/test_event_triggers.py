"""Every example of ``docs/event-triggers.md`` runs, and does what the text around it says."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bellringer
from bellringer import DefinitionError, TriggerData, call, param
from bellringer.definitions import TriggerFields
from tests.support.contexts import FakeContext, KeepingLogger
from tests.support.virtual_time import run_virtual

TEXT = (Path(__file__).parents[2] / "docs/event-triggers.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", TEXT, re.DOTALL))
LIMIT = 20


def load(name: str) -> dict[str, Any]:
    module: dict[str, Any] = {"__name__": f"example_{name}"}
    exec(compile(EXAMPLES[name], f"{name}.py", "exec"), module)
    return module


class Context(FakeContext):
    """A context that runs a workflow, if it is given one, and says when it was told something."""

    def __init__(self, definition: Any, workflow: Any = None, **values: Any) -> None:
        super().__init__(definition.params.resolve(values))
        self.workflow = workflow
        self.told = asyncio.Event()

    async def emit(self, events: Any, connection: Any = None) -> None:
        self.emitted.append(list(events))
        if self.workflow is not None:
            logger = self.logger
            await self.workflow(TriggerData.of(events, logger=logger, connection=connection))
        self.told.set()

    def fail(self, error: Any) -> None:
        super().fail(error)
        self.told.set()


def scenario(
    name: str, work: Callable[[Context, Any], Any], workflow: Any = None, **values: Any
) -> Context:
    """Start the trigger of an example, let ``work`` look at it, stop it, and return its context."""

    async def run() -> Context:
        definition = load(name)["start"]
        ctx = Context(definition, workflow, **values)
        stop = await call(definition.start, ctx)
        await asyncio.wait_for(ctx.told.wait(), LIMIT)
        await work(ctx, definition)
        ctx.signal.abort()
        await asyncio.wait_for(call(stop), LIMIT)
        return ctx

    return run_virtual(run())


async def nothing(ctx: Context, definition: Any) -> None: ...


def test_every_example_is_tried_here() -> None:
    assert len(EXAMPLES) == TEXT.count("```python")
    here = Path(__file__).read_text("utf-8")
    assert all(f'"{name}"' in here for name in EXAMPLES)


def test_the_inbox_hands_files_over_and_moves_them_afterwards(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)

    async def all_done(ctx: Context, definition: Any) -> None:
        assert definition.shape.tabs == ("Settings", "Pace")
        await asyncio.sleep(1)

    ctx = scenario("inbox", all_done, folder=str(tmp_path), batch=2)
    assert ctx.emitted == [
        [{"id": "a", "bytes": 1}, {"id": "b", "bytes": 1}], [{"id": "c", "bytes": 1}],
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "done").iterdir()) == ["a", "b", "c"]


def test_the_inbox_keeps_files_whose_run_failed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    attempts = []

    async def fails_once(trigger: TriggerData) -> None:
        attempts.append(trigger.input["id"])
        if len(attempts) == 1:
            raise bellringer.RunFailed(1, 1, "no")

    ctx = scenario("inbox", nothing, fails_once, folder=str(tmp_path))
    assert attempts == ["a", "a"]
    assert [level for level, _ in ctx.logger.lines] == ["warning"]
    assert (tmp_path / "done" / "a").exists()


def test_the_inbox_reports_that_its_folder_is_gone(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a").write_text("a")

    async def remove(ctx: Context, definition: Any) -> None:
        ctx.told.clear()
        await asyncio.sleep(1)
        inbox.rename(tmp_path / "elsewhere")
        await asyncio.wait_for(ctx.told.wait(), LIMIT)

    ctx = scenario("inbox", remove, folder=str(inbox))
    assert [type(error) for error in ctx.failures] == [FileNotFoundError]


def test_a_wrong_definition_says_what_the_text_shows() -> None:
    with pytest.raises(DefinitionError) as caught:
        load("wrong")
    shown = re.findall(r"^    (trigger 'acme/files/inbox/arrived', field .*)$", TEXT, re.MULTILINE)
    assert str(caught.value).splitlines() == shown
    assert len(shown) == 3


def test_plain_functions_read_emit_and_remember(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one\ntwo\n")

    ctx = scenario("plain", nothing, file=str(file))
    assert ctx.emitted == [[{"id": 1, "line": "one"}, {"id": 2, "line": "two"}]]
    assert ctx.state.values == {"lines": 2}


def test_a_loop_of_ones_own_goes_on_until_it_is_stopped() -> None:
    async def three_minutes(ctx: Context, definition: Any) -> None:
        await asyncio.sleep(185)

    ctx = scenario("loop", three_minutes)
    assert ctx.emitted == [[{"id": 1}], [{"id": 2}], [{"id": 3}], [{"id": 4}]]
    assert ctx.failures == []


def test_a_loop_of_ones_own_reports_its_end() -> None:
    async def fails(trigger: TriggerData) -> None:
        raise KeyError("broken")

    ctx = scenario("loop", nothing, fails)
    assert [type(error) for error in ctx.failures] == [KeyError]


def test_a_workflow_commits_the_batches_of_a_connection() -> None:
    run = load("workflow")["run"]

    async def all_done(ctx: Context, definition: Any) -> None:
        await asyncio.sleep(5)
        assert definition.start.__globals__["queue"] == []

    def with_id(trigger: TriggerData) -> Any:
        data = [bellringer.Event({"id": e.data}, e.meta) for e in trigger.data]
        return run(TriggerData.of(data, logger=trigger.logger, connection=trigger.connection))

    ctx = scenario("connection", all_done, with_id)
    assert [[event.data for event in batch] for batch in ctx.emitted] == [["a", "b"], ["c"]]
    assert ctx.logger.lines == [("info", f"{message} from orders") for message in "abc"]


def test_a_batch_that_no_workflow_commits_comes_again_and_can_be_parked() -> None:
    async def park(trigger: TriggerData) -> None:
        connection = trigger.connection
        assert connection is not None
        if len(seen) == 1:
            assert await connection.lag() == 1
            await connection.move_to_dlq("unreadable")
        seen.append(trigger.input)

    seen: list[Any] = []

    async def look(ctx: Context, definition: Any) -> None:
        await asyncio.sleep(1.5)
        assert definition.start.__globals__["parked"] == ["a", "b"]

    scenario("connection", look, park)
    assert seen[:2] == [["a", "b"], ["a", "b"]]


def test_a_workflow_reads_what_the_table_lists() -> None:
    run = load("workflow")["run"]
    logger = KeepingLogger()
    assert asyncio.run(run(TriggerData.of([{"id": 7}], logger=logger))) == {"id": 7}
    with pytest.raises(ValueError, match="too many"):
        asyncio.run(run(TriggerData.of([{"id": n} for n in range(101)], logger=logger)))


def test_an_integration_opens_and_closes() -> None:
    definition = load("integration")["connect"]
    settings = definition.settings.resolve({"url": "http://store", "token": "cfg:TOKEN"})

    async def run() -> None:
        opened = await call(definition.open, settings)
        assert (opened.client.url, opened.client.is_open) == ("http://store", True)
        await call(opened.close)
        assert not opened.client.is_open

    asyncio.run(run())


def test_the_tables_list_every_field_and_every_param_there_is() -> None:
    for field in TriggerFields.__annotations__:
        assert re.search(rf"^\| `{field}` \|", TEXT, re.MULTILINE), field
    builders = [name for name in vars(param) if callable(getattr(param, name)) and name.islower()]
    builders = [name for name in builders if not name.startswith("_")]
    assert sorted(set(re.findall(r"^\| `param\.(\w+)\(", TEXT, re.MULTILINE))) == sorted(builders)
