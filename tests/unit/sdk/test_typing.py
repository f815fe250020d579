"""The types hold for authors: right code passes a strict check, and each misspelled field is found."""

from pathlib import Path

import pytest

RIGHT = """
from collections.abc import Awaitable, Callable

from bellringer import Connection, Context, Event, TriggerData, param, poll, sleep, trigger, workflow

@trigger(
    name="acme/shop/orders/new", label="x", icon="a.svg",
    permissions={"integrations": ["database"]},
    params={
        "database": param.integration(kind="database", variants=["PostgreSQL"], required=True),
        "every": param.number(default=5, min=1),
    },
)
async def start(ctx: Context) -> Callable[[], Awaitable[None]]:
    async def tick() -> str | None:
        connection = Connection(lambda: None, lambda error: None, lambda: None)
        await ctx.emit([{"id": 1}, Event(2, {"queue": "orders"})], connection=connection)
        return "again"

    def on_error(error: Exception) -> str | None:
        return "fail"

    await sleep(1, ctx.signal)
    return poll(ctx, every=ctx.params.every, tick=tick, on_error=on_error)

@workflow
async def run(trigger: TriggerData) -> int:
    return trigger.meta.size
"""

WRONG = """
from bellringer import param, trigger
trigger(name="a/b/c", label="x", icon="a.svg", stop=print)
trigger(name="a/b/c", icon="a.svg")
trigger(print)
param.number(mim=1)
param.select()
"""


def test_a_type_checker_tells_right_from_wrong(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    files = [str(tmp_path / name) for name in ("right.py", "wrong.py")]
    config = ["--config-file", "", "--strict", "--cache-dir", str(tmp_path / "cache")]
    told, _, _ = api.run([*config, *files])
    lines = {line.rsplit("/", 1)[-1] for line in told.splitlines() if ": error:" in line}
    assert {int(line.split(":")[1]) for line in lines} == {3, 4, 5, 6, 7}
    assert {line.split(":")[0] for line in lines} == {"wrong.py"}
