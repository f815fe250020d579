"""Params: what an author may declare, what values they take, and what is said of those they don't."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellringer import Params, ParamsInvalid, param
from bellringer.errors import Fault
from bellringer.params import Declaration, bind_all


def bound(**declared: Declaration) -> Params:
    faults: list[Fault] = []
    params = bind_all(declared, faults)
    assert faults == []
    return params


def faults_of(declared: Any) -> dict[str, str]:
    faults: list[Fault] = []
    bind_all(declared, faults)
    return {fault.field: fault.rule for fault in faults}


def problems_of(params: Params, values: dict[str, Any]) -> dict[str, tuple[str, str]]:
    with pytest.raises(ParamsInvalid) as caught:
        params.resolve(values)
    return {p.name: (p.code, p.detail) for p in caught.value.problems}


NUMBER_RULE = "is a finite number of at most 9007199254740991 either way."
OPTIONS_RULE = "is a list of different strings, or a mapping of them to labels."

WRONG_DECLARATIONS: list[tuple[Declaration, str, str]] = [
    (param.string(label=""), "label", "is not blank."),
    (param.string(label=5), "label", "is a string."),
    (param.string(label="x" * 101), "label", "has at most 100 characters; this one has 101."),
    (param.string(label="a\nb"), "label", "is one line, without control characters."),
    (param.string(description="  "), "description", "is not blank."),
    (param.string(tab=""), "tab", "is not blank."),
    (param.string(tab="x" * 61), "tab", "has at most 60 characters; this one has 61."),
    (param.string(required="yes"), "required", "is True or False."),
    (param.string(default=5), "default", "must be a string."),
    (param.string(default="a\0b"), "default", "must hold no NUL character."),
    (param.string(default="\ud800"), "default", "must hold no lone surrogates."),
    (param.string(requird=True), "requird", "does not exist. Did you mean 'required'?"),
    (
        param.string(min=1),
        "min",
        "does not exist. There are label, description, required, default, tab.",
    ),
    (param.number(min="1"), "min", NUMBER_RULE),
    (param.number(max=float("inf")), "max", NUMBER_RULE),
    (param.number(max=True), "max", NUMBER_RULE),
    (param.number(min=2**53), "min", NUMBER_RULE),
    (param.number(min=3, max=2), "min", "is at most max, which is 2."),
    (param.number(integer=1), "integer", "is True or False."),
    (param.number(default="5"), "default", "must be a number."),
    (param.number(default=True), "default", "must be a number."),
    (param.number(default=0, min=1, max=9), "default", "must be a number from 1 to 9."),
    (param.number(default=0, min=1), "default", "must be a number of at least 1."),
    (
        param.number(default=1.5, max=9, integer=True),
        "default",
        "must be a whole number of at most 9.",
    ),
    (param.number(default=1e300, integer=True), "default", "must be a whole number."),
    (param.boolean(default=1), "default", "must be true or false."),
    (param.select(), "options", "is required."),
    (param.select(options=[]), "options", OPTIONS_RULE),
    (param.select(options="abc"), "options", OPTIONS_RULE),
    (param.select(options=["a", "a"]), "options", OPTIONS_RULE),
    (param.select(options=["a", 1]), "options", OPTIONS_RULE),
    (param.select(options={"a": 1}), "options", "each option is a string."),
    (param.select(options=["a", ""]), "options", "each option is not blank."),
    (param.select(options=["a", "b"], default="c"), "default", "must be one of 'a', 'b'."),
    (
        param.json(default={1: 2}),
        "default",
        "must be a JSON value: lists, mappings with strings as keys, and what they hold.",
    ),
    (
        param.json(default=[{"a": {1}}]),
        "default",
        "must be a JSON value: lists, mappings with strings as keys, and what they hold.",
    ),
    (
        param.json(default=float("nan")),
        "default",
        "must hold finite numbers, and integers below 2^53.",
    ),
    (
        param.json(default=[2**53]),
        "default",
        "must hold finite numbers, and integers below 2^53.",
    ),
    (param.json(default={"a\0": 1}), "default", "must hold no NUL character."),
    (
        param.secret(default="hunter2"),
        "default",
        "must be cfg:KEY, with the key of an app config value (3 to 100 of A-Z, a-z, 0-9, '_').",
    ),
    (param.integration(), "kind", "is required."),
    (
        param.integration(kind="Database"),
        "kind",
        "is a kind such as 'database', or one that a plugin brings, such as 'acme/shop/crm'; "
        "at most 63 characters.",
    ),
    (param.integration(kind=5), "kind", "is a string."),
    (param.integration(kind="kv", variants="Redis"), "variants", "is a list of variants."),
    (param.integration(kind="kv", variants=[5]), "variants", "each variant is a string."),
    (param.integration(kind="kv", variants=["a", "a"]), "variants", "names each variant once."),
    (
        param.integration(kind="kv", variants=["all"]),
        "variants",
        "'all', 'any' and names that start with '__' are reserved.",
    ),
    (
        param.integration(kind="kv", default="Shop DB"),
        "default",
        "must be the id of an integration.",
    ),
    (
        param.appconfig(default="ab"),
        "default",
        "must be the key of an app config value (3 to 100 of A-Z, a-z, 0-9, '_').",
    ),
    (Declaration("js", {}), "type", "is one of string, number, boolean, select, json, secret, "
     "integration, appconfig."),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "field", "rule"), WRONG_DECLARATIONS)
def test_a_wrong_declaration_names_its_field_and_the_rule(
    declared: Declaration, field: str, rule: str
) -> None:
    assert faults_of({"table": declared}) == {f"params.table.{field}": rule}


@pytest.mark.parametrize("name", ["all", "any", "__x", "__init__"])
def test_reserved_names_are_refused(name: str) -> None:
    rule = "'all', 'any' and names that start with '__' are reserved."
    assert faults_of({name: param.string()}) == {f"params.{name}": rule}


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "ä", "x" * 64, "a b", 5])
def test_a_name_is_one_that_can_be_asked_for(name: Any) -> None:
    rule = "is a name of up to 63 letters, digits and '_', which does not start with a digit."
    assert faults_of({name: param.string()}) == {f"params.{name}": rule}


def test_a_word_of_python_is_no_name() -> None:
    assert "is a word of Python" in faults_of({"from": param.string()})["params.from"]


@pytest.mark.parametrize("declared", [[], "table", 5])
def test_params_are_a_mapping(declared: Any) -> None:
    rule = "is a mapping of names to param.string() and its like."
    assert faults_of(declared) == {"params": rule}


@pytest.mark.parametrize("declared", ["string", str, param.string])
def test_each_param_is_made_with_a_builder(declared: Any) -> None:
    assert faults_of({"a": declared}) == {"params.a": "is made with param.string() or its like."}


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert set(
        faults_of(
            {"a": param.string(label="", tab=""), "all": param.string(), "b": param.json(x=1)}
        )
    ) == {"params.a.label", "params.a.tab", "params.all", "params.b.x"}


def test_a_label_is_made_from_the_name_unless_there_is_one() -> None:
    params = bound(every_seconds=param.number(), b=param.string(label="Given"), _=param.string())
    assert [p.label for p in params] == ["Every seconds", "Given", "_"]


# --- values ----------------------------------------------------------------------------------------

RIGHT: list[tuple[Declaration, Any, Any]] = [
    (param.string(), "orders", "orders"),
    (param.string(), "", ""),
    (param.string(required=True), " ", " "),
    (param.number(), 5, 5),
    (param.number(), 2.5, 2.5),
    (param.number(min=1, max=9), 9, 9),
    (param.number(min=1, max=9), 1, 1),
    (param.number(integer=True), 5.0, 5),
    (param.boolean(required=True), False, False),
    (param.number(required=True), 0, 0),
    (param.select(options=["a", "b"]), "b", "b"),
    (param.select(options={"a": "First"}), "a", "a"),
    (param.json(), {"a": [1, None, "x", True]}, {"a": [1, None, "x", True]}),
    (param.json(required=True), [], []),
    (param.secret(), "cfg:DATABASE_URL", "cfg:DATABASE_URL"),
    (param.secret(), "cfg:" + "k" * 100, "cfg:" + "k" * 100),
    (param.integration(kind="database"), "shop-db", "shop-db"),
    (param.appconfig(), "REGION", "REGION"),
    (param.string(), None, None),
]


@pytest.mark.parametrize(("declared", "given", "read"), RIGHT)
def test_a_right_value_is_what_the_trigger_reads(
    declared: Declaration, given: Any, read: Any
) -> None:
    value = bound(it=declared).resolve({"it": given}).it
    assert value == read
    assert type(value) is type(read)


WRONG: list[tuple[Declaration, Any]] = [
    (param.string(), 5),
    (param.string(), "a\0"),
    (param.number(min=1, max=9), 10),
    (param.number(min=1, max=9), 0.999),
    (param.number(), "5"),
    (param.number(), True),
    (param.number(), float("nan")),
    (param.number(), 10**400),
    (param.number(integer=True), 1.5),
    (param.boolean(), "true"),
    (param.select(options=["a"]), "A"),
    (param.select(options=["a"]), ["a"]),
    (param.json(), {1: 2}),
    (param.json(), object()),
    (param.secret(), "DATABASE_URL"),
    (param.secret(), "cfg:ab"),
    (param.secret(), "cfg:KEY\n"),
    (param.secret(), "cfg:" + "k" * 101),
    (param.secret(), {"cfg": "KEY"}),
    (param.integration(kind="database"), "-db"),
    (param.integration(kind="database"), 4),
    (param.appconfig(), "cfg:REGION"),
    (param.appconfig(), "REGIÖN"),
]


@pytest.mark.parametrize(("declared", "given"), WRONG)
def test_a_wrong_value_is_reported_by_name(declared: Declaration, given: Any) -> None:
    [(name, (code, detail))] = problems_of(bound(it=declared), {"it": given}).items()
    assert (name, code) == ("it", "invalid")
    assert detail.startswith("must ")


def test_every_wrong_value_is_reported_at_once() -> None:
    params = bound(
        table=param.string(required=True),
        every=param.number(min=1),
        token=param.secret(required=True),
        fine=param.boolean(),
    )
    assert problems_of(params, {"every": 0, "token": 5, "tabel": "x", "fine": True}) == {
        "tabel": ("unknown", "is no param of this trigger."),
        "table": ("required", "is required."),
        "every": ("invalid", "must be a number of at least 1."),
        "token": (
            "invalid",
            "must be cfg:KEY, with the key of an app config value "
            "(3 to 100 of A-Z, a-z, 0-9, '_').",
        ),
    }


@pytest.mark.parametrize("declared", [declared for declared, _ in WRONG])
def test_no_message_holds_the_value(declared: Declaration) -> None:
    with pytest.raises(ParamsInvalid) as caught:
        bound(it=declared).resolve({"it": ["s3cr3t-\0"], "other": "s3cr3t"})
    assert "s3cr3t" not in str(caught.value) + repr(caught.value)


def test_defaults_are_filled_in_where_nothing_is_given() -> None:
    params = bound(
        table=param.string(required=True, default="orders"), every=param.number(default=5)
    )
    values = params.resolve({"every": None})
    assert (values.table, values.every) == ("orders", 5)
    assert params.resolve({"table": "other"}).table == "other"


def test_a_required_text_is_not_empty_even_with_a_default() -> None:
    params = bound(table=param.string(required=True, default="orders"))
    assert problems_of(params, {"table": ""}) == {"table": ("required", "is required.")}


def test_what_has_neither_value_nor_default_reads_as_none() -> None:
    assert bound(table=param.string()).resolve({}).table is None


def test_a_json_default_is_not_shared_between_instances() -> None:
    default: dict[str, Any] = {"a": []}
    params = bound(filter=param.json(default=default))
    params.resolve({}).filter["a"].append(1)
    assert params.resolve({}).filter == {"a": []}


def test_json_nested_too_deep_is_refused_and_crashes_nothing() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    [(_, detail)] = problems_of(bound(it=param.json()), {"it": deep}).values()
    assert detail == "must be nested at most 32 deep."
    while deep:
        [deep] = deep


def test_an_integration_says_which_variants_fit() -> None:
    some, every = bound(
        a=param.integration(kind="database", variants=["PostgreSQL"]),
        b=param.integration(kind="database"),
    )
    assert some.accepts("PostgreSQL") and not some.accepts("MySQL")
    assert every.accepts("MySQL")


# --- access ----------------------------------------------------------------------------------------


def test_settings_are_read_by_attribute_and_by_name() -> None:
    values = bound(table=param.string(), values=param.number()).resolve({"table": "t", "values": 1})
    assert (values.table, values["table"], values.values, list(values)) == (
        "t", "t", 1, ["table", "values"],
    )  # fmt: skip


def test_asking_for_a_param_that_is_not_there_lists_those_that_are() -> None:
    values = bound(table=param.string()).resolve({})
    with pytest.raises(AttributeError, match=r"no param 'tabel'; there are: table"):
        _ = values.tabel


def test_settings_show_no_value_and_can_be_copied() -> None:
    values = bound(table=param.string()).resolve({"table": "s3cr3t"})
    assert repr(values) == "<params table>"
    assert copy.deepcopy(values).table == "s3cr3t"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")), inner
    ),
    max_leaves=20,
)  # fmt: skip


@given(json_values.filter(lambda value: value is not None))
def test_any_json_is_taken_and_read_back_equal(value: Any) -> None:
    assert bound(it=param.json()).resolve({"it": value}).it == value


@given(json_values)
def test_no_value_of_any_type_makes_any_param_crash(value: Any) -> None:
    params = bound(
        a=param.string(), b=param.number(integer=True, min=0), c=param.boolean(),
        d=param.select(options=["x"]), e=param.secret(), f=param.integration(kind="kv"),
        g=param.appconfig(),
    )  # fmt: skip
    for name in "abcdefg":
        try:
            params.resolve({name: value})
        except ParamsInvalid as error:
            assert [problem.name for problem in error.problems] == [name]
