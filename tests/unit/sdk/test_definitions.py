"""``@trigger``: every rule of every field, said when the file loads, with the trigger's name."""

import dataclasses
import functools
from typing import Any

import pytest

from bellringer import DefinitionError, Permissions, TriggerDefinition, param, trigger

FIELDS: dict[str, Any] = {
    "name": "acme/shop/orders/new",
    "label": "New orders",
    "icon": "icons/orders.svg",
}


async def begin(ctx: Any) -> None: ...


def define(start: Any = begin, **changes: Any) -> TriggerDefinition:
    fields = {name: value for name, value in {**FIELDS, **changes}.items() if value is not ...}
    definition: TriggerDefinition = trigger(**fields)(start)
    return definition


def fault_of(start: Any = begin, **changes: Any) -> tuple[str, str]:
    with pytest.raises(DefinitionError) as caught:
        define(start, **changes)
    [fault] = caught.value.faults
    assert str(caught.value) == f"{caught.value.subject}, field {fault.field!r}: {fault.rule}"
    return fault.field, fault.rule


def test_the_least_that_a_trigger_says() -> None:
    definition = define()
    assert definition.name == "acme/shop/orders/new"
    assert definition.start is begin
    assert definition.shape.document() == {
        "name": "acme/shop/orders/new",
        "label": "New orders",
        "description": None,
        "icon": "icons/orders.svg",
        "permissions": {"integrations": [], "appconfig": False},
        "params": [],
        "tabs": [],
        "retry": False,
    }


def test_all_that_a_trigger_can_say() -> None:
    shape = define(
        description="Each order once.",
        permissions={"integrations": ["database", "acme/shop/crm"], "appconfig": True},
        params={
            "database": param.integration(kind="database", variants=["PostgreSQL"]),
            "region": param.appconfig(tab="Where"),
        },
        tabs=["Where"],
        retry=True,
    ).shape
    assert shape.description == "Each order once."
    assert shape.permissions == Permissions(("database", "acme/shop/crm"), True)
    assert [p.name for p in shape.params] == ["database", "region"]
    assert shape.tabs == ("Settings", "Where")
    assert shape.retry is True
    assert shape.warnings == ()


def test_a_definition_is_frozen() -> None:
    definition = define()
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.start = None  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.shape.name = "x"  # type: ignore[misc]


# --- fields ----------------------------------------------------------------------------------------

NAME_RULE = (
    "is the plugin's name and the file's path under triggers/, as in "
    "acme/shop/orders/new: parts of a-z, 0-9, '_' and '-', all lowercase."
)
PATH_RULE = "is a path relative to the plugin's package, with '/', as in icons/orders.svg."
SUFFIX_RULE = "ends in one of .svg, .png, .jpg, .jpeg, .gif, .webp."
KIND_RULE = (
    "each is a kind such as 'database', or one that a plugin brings, such as 'acme/shop/crm'; "
    "at most 63 characters."
)

WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"label": ...}, "label", "is required."),
    ({"label": None}, "label", "is required."),
    ({"icon": ...}, "icon", "is required."),
    ({"name": "orders"}, "name", NAME_RULE),
    ({"name": "acme/shop"}, "name", NAME_RULE),
    ({"name": "acme/shop/Orders"}, "name", NAME_RULE),
    ({"name": "acme/shop/orders/"}, "name", NAME_RULE),
    ({"name": "acme/shop//orders"}, "name", NAME_RULE),
    ({"name": "acme/shop/or ders"}, "name", NAME_RULE),
    ({"name": "acme/shop/orders\n"}, "name", NAME_RULE),
    ({"name": "acme/shop/../orders"}, "name", NAME_RULE),
    ({"name": "acme/shop/_orders"}, "name", NAME_RULE),
    ({"name": "1acme/shop/orders"}, "name", NAME_RULE),
    ({"name": 5}, "name", "is a string."),
    (
        {"name": "acme/shop/" + "x" * 239},
        "name",
        "has at most 248 characters; this one has 249.",
    ),
    ({"label": " "}, "label", "is not blank."),
    ({"label": "x" * 101}, "label", "has at most 100 characters; this one has 101."),
    ({"label": 5}, "label", "is a string."),
    ({"description": "a\nb"}, "description", "is one line, without control characters."),
    (
        {"description": "x" * 501},
        "description",
        "has at most 500 characters; this one has 501.",
    ),
    ({"icon": "icons/orders.txt"}, "icon", SUFFIX_RULE),
    ({"icon": "icons/orders"}, "icon", SUFFIX_RULE),
    ({"icon": "icons/orders.SVG"}, "icon", SUFFIX_RULE),
    ({"icon": ""}, "icon", SUFFIX_RULE),
    ({"icon": "/icons/orders.svg"}, "icon", PATH_RULE),
    ({"icon": "icons\\orders.svg"}, "icon", PATH_RULE),
    ({"icon": b"icons/orders.svg"}, "icon", "is a path, as in icons/orders.svg."),
    ({"retry": 3}, "retry", "is True or False."),
    (
        {"permissions": ["database"]},
        "permissions",
        'is a mapping, as in {"integrations": ["database"], "appconfig": True}.',
    ),
    (
        {"permissions": {"integration": ["kv"]}},
        "permissions.integration",
        "does not exist. Did you mean 'integrations'?",
    ),
    ({"permissions": {"integrations": "kv"}}, "permissions.integrations", "is a list of kinds."),
    ({"permissions": {"integrations": ["KV"]}}, "permissions.integrations", KIND_RULE),
    ({"permissions": {"integrations": [[]]}}, "permissions.integrations", "each is a string."),
    (
        {"permissions": {"integrations": ["kv", "kv"]}},
        "permissions.integrations",
        "names each kind once.",
    ),
    ({"permissions": {"appconfig": "yes"}}, "permissions.appconfig", "is True or False."),
    (
        {"params": {"db": param.integration(kind="database")}},
        "params.db",
        "needs 'database' in permissions['integrations'].",
    ),
    (
        {"params": {"region": param.appconfig()}},
        "params.region",
        "needs permissions['appconfig'] to be True.",
    ),
    ({"params": {"all": param.string()}}, "params.all",
     "'all', 'any' and names that start with '__' are reserved."),
    ({"params": {"n": param.number(default=0, min=1)}}, "params.n.default",
     "must be a number of at least 1."),
    ({"tabs": "Where"}, "tabs", "is a list of names."),
    ({"tabs": ["Where", "Where"]}, "tabs", "names each tab once."),
    ({"tabs": [""]}, "tabs", "each tab is not blank."),
    ({"tabs": [5]}, "tabs", "each tab is a string."),
    (
        {"stop": print},
        "stop",
        "does not exist: an instance's clean-up is the function that start returns.",
    ),
    ({"lable": "x"}, "lable", "does not exist. Did you mean 'label'?"),
    (
        {"zzz": 1},
        "zzz",
        "does not exist. There are name, label, icon, description, permissions, params, tabs, retry.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "field", "rule"), WRONG_FIELDS)
def test_a_wrong_field_names_itself_and_the_rule(
    changes: dict[str, Any], field: str, rule: str
) -> None:
    assert fault_of(**changes) == (field, rule)


def test_the_error_names_the_trigger() -> None:
    with pytest.raises(DefinitionError, match=r"^trigger 'acme/shop/orders/new', field 'retry': "):
        define(retry="no")


def test_without_a_name_the_error_names_the_function() -> None:
    with pytest.raises(
        DefinitionError, match=r"^trigger without a name, of begin\(\), field 'name'"
    ):
        define(name=...)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        define(name=5, label="", retry=1, params={"a": 1}, tabs=3, stop=print, lable=1)
    assert {fault.field for fault in caught.value.faults} == {
        "name", "label", "retry", "params.a", "tabs", "stop", "lable",
    }  # fmt: skip
    assert len(str(caught.value).splitlines()) == 7


@pytest.mark.parametrize("name", ["acme/shop/" + "x" * 238, "a/b/c", "a/b/2-x/y_z"])
def test_names_up_to_the_limit_are_taken(name: str) -> None:
    assert define(name=name).name == name


@pytest.mark.parametrize("icon", ["a.png", "../art/a.jpeg", "./icons/a.webp", "icons/a.b.gif"])
def test_every_path_in_the_plugin_may_be_an_icon(icon: str) -> None:
    assert define(icon=icon).shape.icon == icon


def test_a_decorator_without_its_fields_says_so() -> None:
    with pytest.raises(DefinitionError, match=r"is given by name"):
        trigger(begin)  # type: ignore[arg-type]


# --- start -----------------------------------------------------------------------------------------


def plain(ctx: Any) -> None: ...


class Starter:
    def __call__(self, ctx: Any) -> None: ...


@pytest.mark.parametrize(
    "start", [plain, Starter(), functools.partial(lambda a, ctx: None, 1), lambda ctx, x=1: None]
)
def test_start_may_be_any_function_of_one_argument(start: Any) -> None:
    assert define(start).start is start


@pytest.mark.parametrize("start", [lambda: None, lambda a, b: None, Starter])
def test_start_takes_ctx_and_nothing_else(start: Any) -> None:
    assert fault_of(start) == ("start", "takes one argument: ctx.")


@pytest.mark.parametrize("start", [None, 5, "start"])
def test_start_is_a_function(start: Any) -> None:
    assert fault_of(start) == ("start", "is a function, async or plain.")


def test_start_does_not_yield() -> None:
    async def yields(ctx: Any) -> Any:
        yield

    def plain_yields(ctx: Any) -> Any:
        yield

    for start in (yields, plain_yields):
        assert fault_of(start) == ("start", "is a function that returns; this one yields.")


# --- one to a file ---------------------------------------------------------------------------------

FILE = """
from bellringer import trigger

@trigger(name="acme/shop/a", label="A", icon="a.svg")
async def {first}(ctx): ...

@trigger(name="acme/shop/b", label="B", icon="a.svg")
async def {second}(ctx): ...
"""


@pytest.mark.parametrize("second", ["other", "start"])
def test_a_second_definition_in_a_file_is_refused(second: str) -> None:
    source = FILE.format(first="start", second=second)
    with pytest.raises(DefinitionError) as caught:
        exec(compile(source, "orders.py", "exec"), {"__name__": "orders"})
    assert str(caught.value) == (
        "trigger 'acme/shop/b', field 'file': defines a trigger already: start. "
        "Put each into a file of its own."
    )


def test_a_file_may_be_loaded_anew_and_may_import_the_trigger_of_another() -> None:
    source = FILE.format(first="start", second="other").split('\n\n@trigger(name="acme/shop/b"')[0]
    module: dict[str, Any] = {"__name__": "orders"}
    exec(compile(source, "orders.py", "exec"), module)
    exec(compile(source, "orders.py", "exec"), module)
    exec(
        compile(source.replace("start(", "mine("), "b.py", "exec"),
        {"__name__": "other", "theirs": module["start"]},
    )


def test_a_definition_belongs_to_the_module_of_its_decorator() -> None:
    """Whatever stands between: a partial, an object, a wrapper from elsewhere."""
    for start in (begin, functools.partial(lambda a, ctx: None, 1), Starter()):
        assert define(start).module == __name__
    assert len({define(), define()}) == 2


# --- tabs ------------------------------------------------------------------------------------------

TABS: list[tuple[list[str | None], list[str] | None, list[str], list[str]]] = [
    ([], None, [], []),
    ([None, None], None, ["Settings"], []),
    (["B", None, "A", "B"], None, ["Settings", "B", "A"], []),
    (["B", "A"], ["A", "B"], ["A", "B"], []),
    (["B", None, "A"], ["A", "B"], ["Settings", "A", "B"], []),
    (
        ["C", "A"],
        ["A"],
        ["A", "C"],
        ["tabs: 'C' is used by a param but not listed; it comes last."],
    ),
    (["A"], ["A", "B"], ["A"], ["tabs: no param uses 'B'."]),
    (
        ["A"],
        [],
        ["A"],
        ["tabs: 'A' is used by a param but not listed; it comes last."],
    ),
    ([None, "A"], ["Settings", "A"], ["Settings", "A"], []),
    ([None, "A"], ["A", "Settings"], ["Settings", "A"], ["tabs: 'Settings' always comes first."]),
    (["Settings", "A"], ["A"], ["Settings", "A"], []),
]


@pytest.mark.parametrize(("used", "listed", "order", "warnings"), TABS)
def test_tabs_come_in_order_and_what_looks_like_a_mistake_is_said(
    used: list[str | None], listed: list[str] | None, order: list[str], warnings: list[str]
) -> None:
    params = {f"p{i}": param.string(**({"tab": t} if t else {})) for i, t in enumerate(used)}
    shape = define(params=params, tabs=... if listed is None else listed).shape
    assert list(shape.tabs) == order
    assert list(shape.warnings) == warnings
