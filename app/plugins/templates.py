"""The files that ``bellringer plugin new`` and ``bellringer trigger new`` write.

``$plugin``, ``$package``, ``$name`` and the like are filled in by ``app.plugins.authoring``.
"""

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "Event triggers of $plugin for Bellringer."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["bellringer"]

[project.optional-dependencies]
test = ["pytest>=8.3"]

[project.entry-points."bellringer.plugins"]
"$plugin" = "$package"

[tool.hatch.build.targets.wheel]
packages = ["$package"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
addopts = ["--import-mode=importlib"]
"""

README = """\
# $plugin

Event triggers for Bellringer.

    bellringer trigger new orders/new    # a trigger, its test and its icon
    python -m pytest                     # try them
    bellringer plugin build              # check everything and write $package/bellringer.json

Build before you package: the manifest ships with the code.
"""

PACKAGE = '''\
"""The plugin $plugin; its triggers are in ``triggers/``, one to a file."""
'''

CONFTEST = '''\
"""A stand-in for what Bellringer gives a trigger, so that tests need no server."""

import asyncio

import pytest

from bellringer import RunFailed, Signal

LIMIT = 10  # seconds that a test waits for what should come at once


class State:
    def __init__(self):
        self.values = {}

    async def get(self, key, default=None):
        return self.values.get(key, default)

    async def set(self, key, value, *, expected=...):
        if expected is not ... and self.values.get(key) != expected:
            return False
        self.values[key] = value
        return True


class Logger:
    def __init__(self):
        self.lines = []

    def info(self, message):
        self.lines.append(("info", str(message)))

    def warning(self, message):
        self.lines.append(("warning", str(message)))

    def error(self, message):
        self.lines.append(("error", str(message)))


class Context:
    """One instance: ``emitted`` has the events of each run, ``failures`` what ctx.fail was told."""

    def __init__(self, definition, **values):
        self.params = definition.params.resolve(values)
        self.signal = Signal()
        self.state = State()
        self.logger = Logger()
        self.emitted = []
        self.failures = []
        self.runs_to_fail = 0
        self._emits = asyncio.Queue()

    async def emit(self, events, connection=None):
        failing = self.runs_to_fail > 0
        self.runs_to_fail -= failing
        self._emits.put_nowait(list(events))
        if failing:
            raise RunFailed(1, 1, "the test wanted it")
        self.emitted.append(list(events))

    def fail(self, error):
        self.failures.append(error)

    async def next_emit(self):
        """Return the events of the next call of emit, whether its run succeeds or fails."""
        return await asyncio.wait_for(self._emits.get(), LIMIT)

    async def stopped(self, stop):
        """Stop the instance as Bellringer does."""
        self.signal.abort()
        await asyncio.wait_for(stop(), LIMIT)


@pytest.fixture
def context():
    return Context
'''

TRIGGER = '''\
"""$label: says what the trigger waits for."""

from bellringer import RunFailed, param, poll, trigger


@trigger(
    name="$name",
    label="$label",
    icon="$icon",
    params={
        "every": param.number(label="Look every (seconds)", default=30, min=1),
        "batch": param.number(
            label="Events per run", default=100, min=1, max=1_000, integer=True
        ),
    },
)
async def start(ctx):
    async def tick():
        after = await ctx.state.get("last", 0)
        events = await read(after, ctx.params.batch)
        if not events:
            return None
        try:
            await ctx.emit(events)
        except RunFailed as error:
            # Nothing was marked, so the next tick reads the same events again.
            ctx.logger.error(error)
            return None
        # Only now may they be forgotten: a worker that dies before this runs them again.
        await ctx.state.set("last", events[-1]["id"])
        return "again" if len(events) == ctx.params.batch else None

    return poll(ctx, every=ctx.params.every, tick=tick)


async def read(after, limit):
    """Return at most ``limit`` events that came after the id ``after``, oldest first.

    This one makes up one event at a time. Put your own source here, and let each event carry the id
    that it has there.
    """
    return [{"id": after + 1}][:limit]
'''

TEST = '''\
"""The trigger $name."""

import asyncio
from importlib import import_module

definition = import_module("$module").start


def test_it_is_what_it_says():
    assert definition.name == "$name"


def test_it_emits_a_batch_and_remembers_it(context):
    async def scenario():
        ctx = context(definition)
        stop = await definition.start(ctx)
        await ctx.next_emit()
        await ctx.stopped(stop)
        assert ctx.emitted == [[{"id": 1}]]
        assert await ctx.state.get("last") == 1
        assert ctx.failures == []

    asyncio.run(scenario())


def test_a_failed_run_is_logged_and_its_events_come_again(context):
    async def scenario():
        ctx = context(definition, every=1)
        ctx.runs_to_fail = 1
        stop = await definition.start(ctx)
        assert await ctx.next_emit() == await ctx.next_emit() == [{"id": 1}]
        await ctx.stopped(stop)
        assert [level for level, _ in ctx.logger.lines] == ["error"]
        assert ctx.failures == []

    asyncio.run(scenario())


def test_it_does_nothing_once_it_is_stopped(context):
    async def scenario():
        ctx = context(definition)
        ctx.signal.abort()
        stop = await definition.start(ctx)
        await ctx.stopped(stop)
        assert ctx.emitted == []

    asyncio.run(scenario())
'''

ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="24" height="24">
  <path fill="none" stroke="#4b5563" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round"
        d="M6 16v-5a6 6 0 0 1 12 0v5l1.5 2h-15zM10 20.5a2 2 0 0 0 4 0"/>
</svg>
"""
