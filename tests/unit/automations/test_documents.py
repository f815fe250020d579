"""Reading a definition from a document: every rule, all errors together, and the canonical form."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.automations import values
from app.automations.documents import read_draft
from app.automations.revision import canonical_document, canonical_form, revision_of
from app.automations.values import Automation, Draft, ScheduleTrigger, Target
from app.errors import InvalidInput

VECTORS = Path(__file__).parents[2] / "vectors"
TARGET = {"repository": "acme/shop", "ref": "main", "workflow": "release"}
RULES = {
    "automation_id": values.automation_id_fault,
    "trigger_id": values.trigger_id_fault,
    "repository": values.repository_fault,
    "ref": values.ref_fault,
    "workflow": values.workflow_fault,
}


def vectors(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


def document(**changed: Any) -> dict[str, Any]:
    return {"name": "Nightly", "target": TARGET, **changed}


def schedule(**changed: Any) -> dict[str, Any]:
    return {"type": "schedule", "id": "a", "expression": "0 3 * * *", **changed}


def faults(doc: object, **options: bool) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        read_draft(doc, **options)
    return [(v.pointer, v.code) for v in caught.value.violations]


@pytest.mark.parametrize(
    "case", vectors("validation.jsonl"), ids=lambda c: f"{c['what']}-{c['value']!r:.20}"
)
def test_a_pattern_judges_as_its_vector_says(case: dict[str, Any]) -> None:
    assert (RULES[case["what"]](case["value"]) is None) is case["valid"]


def test_the_vectors_know_each_of_the_patterns() -> None:
    assert {case["what"] for case in vectors("validation.jsonl")} == set(RULES)


@pytest.mark.parametrize("case", vectors("revisions.jsonl"), ids=lambda c: c["case"])
def test_a_revision_is_what_its_vector_says(case: dict[str, Any]) -> None:
    draft = read_draft(case["input"])
    assert canonical_form(draft).decode() == case["canonical"]
    assert revision_of(draft) == case["revision"]


# --- names and descriptions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "\t\n", "\u00a0", "\u2003\u3000", "\u2028", "\x85", "\x1f"),
        *("a\0", "a\tb", "a\nb", "a\x7f", "a\x80", "a\x9f", "\x1ba", "a\ud800", "\udfff"),
        "x" * 1_001,
    ],
)
def test_a_bad_name_is_refused(name: str) -> None:
    assert faults(document(name=name)) == [("/name", "invalid")]


@pytest.mark.parametrize(
    "name", ["a", " a ", "é", "日本 🔔", "a\u200b", "\u200b", "\ufeff", "x" * 1_000, "🔔" * 1_000]
)
def test_a_good_name_is_kept_as_it_is(name: str) -> None:
    assert read_draft(document(name=name)).name == name


@pytest.mark.parametrize(
    "description", ["a\0", "a\r", "\x0b", "a\x7f", "a\x85", "a\ud800", "x" * 100_001]
)
def test_a_bad_description_is_refused(description: str) -> None:
    assert faults(document(description=description)) == [("/description", "invalid")]


@pytest.mark.parametrize("description", ["", " ", "a\tb\nc", "🔔" * 100_000, None])
def test_a_good_description_is_kept_as_it_is(description: str | None) -> None:
    assert read_draft(document(description=description)).description == description


# --- shape ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, 1, 1.5, True, [], {}, ["a"]])
@pytest.mark.parametrize(
    ("make", "pointer"),
    [
        (lambda w: document(name=w), "/name"),
        (lambda w: document(target={**TARGET, "repository": w}), "/target/repository"),
        (lambda w: document(target={**TARGET, "ref": w}), "/target/ref"),
        (lambda w: document(target={**TARGET, "workflow": w}), "/target/workflow"),
        (lambda w: document(triggers=[schedule(id=w)]), "/triggers/0/id"),
        (lambda w: document(triggers=[schedule(expression=w)]), "/triggers/0/expression"),
        (lambda w: document(triggers=[{"type": "api", "id": w}]), "/triggers/0/id"),
    ],
)
def test_what_is_text_takes_nothing_else(wrong: Any, make: Any, pointer: str) -> None:
    assert faults(make(wrong)) == [(pointer, "type")]


@pytest.mark.parametrize("wrong", [None, 1, "a", [], True])
def test_a_document_and_a_target_are_objects(wrong: Any) -> None:
    assert faults(wrong) == [("", "type")]
    assert faults(document(target=wrong)) == [("/target", "type")]
    assert faults(document(triggers=[wrong])) == [("/triggers/0", "type")]


@pytest.mark.parametrize("wrong", [None, 1, "a", {}, True])
def test_triggers_are_a_list(wrong: Any) -> None:
    assert faults(document(triggers=wrong)) == [("/triggers", "type")]


@pytest.mark.parametrize("wrong", [None, 0, 1, "true", [], {}])
def test_enabled_is_true_or_false(wrong: Any) -> None:
    assert faults(document(triggers=[schedule(enabled=wrong)])) == [("/triggers/0/enabled", "type")]


@pytest.mark.parametrize("kind", ["plugin", "API", "", None, 1, [], {}])
def test_an_unknown_type_of_trigger_is_refused(kind: Any) -> None:
    assert faults(document(triggers=[{"type": kind, "id": "a"}])) == [
        ("/triggers/0/type", "unknown-type")
    ]


def test_what_is_required_is_missed() -> None:
    assert faults({}) == [("/name", "required"), ("/target", "required")]
    assert faults(document(target={})) == [
        ("/target/repository", "required"),
        ("/target/ref", "required"),
        ("/target/workflow", "required"),
    ]
    assert faults(document(triggers=[{}, {"type": "api"}, {"type": "schedule"}])) == [
        ("/triggers/0/type", "required"),
        ("/triggers/1/id", "required"),
        ("/triggers/2/id", "required"),
        ("/triggers/2/expression", "required"),
    ]


def test_unknown_fields_are_refused_and_their_names_escaped() -> None:
    assert faults(document(**{"a/b~c": 1, "id": "x"})) == [
        ("/a~1b~0c", "unknown-field"),
        ("/id", "unknown-field"),
    ]
    assert faults(document(target={**TARGET, "x": 1})) == [("/target/x", "unknown-field")]
    assert faults(document(triggers=[{"type": "api", "id": "a", "expression": "x"}])) == [
        ("/triggers/0/expression", "unknown-field")
    ]


def test_all_errors_come_together() -> None:
    wrong = {
        "name": " ",
        "description": 1,
        "target": {"repository": "x", "ref": "-", "workflow": "/"},
        "triggers": [
            schedule(id="A", expression="* *"),
            {"type": "no"},
            5,
            schedule(id="a"),
            schedule(),
        ],
        "colour": "red",
    }
    assert {pointer for pointer, _ in faults(wrong)} == {
        "/name",
        "/description",
        "/target/repository",
        "/target/ref",
        "/target/workflow",
        "/triggers/0/id",
        "/triggers/0/expression",
        "/triggers/1/type",
        "/triggers/2",
        "/triggers/4/id",
        "/colour",
    }


def test_enabled_may_be_left_out_unless_it_is_required() -> None:
    doc = document(triggers=[schedule(), {"type": "api", "id": "manual"}])
    draft = read_draft(doc)
    assert draft.api_enabled
    assert draft.schedules[0].enabled
    assert faults(doc, enabled_required=True) == [
        ("/triggers/0/enabled", "required"),
        ("/triggers/1/enabled", "required"),
    ]


# --- triggers ---------------------------------------------------------------------------------------


def test_at_most_one_api_trigger() -> None:
    api = {"type": "api", "id": "a", "enabled": False}
    assert faults(document(triggers=[api, {**api, "id": "b"}, {**api, "id": "c"}])) == [
        ("/triggers/1", "duplicate-api"),
        ("/triggers/2", "duplicate-api"),
    ]


@pytest.mark.parametrize("api_id", ["manual", "press-me"])
def test_an_enabled_api_trigger_takes_the_id_manual_and_its_own(api_id: str) -> None:
    api = {"type": "api", "id": api_id}
    for taken in {api_id, "manual"}:
        assert faults(document(triggers=[schedule(id=taken), api])) == [
            ("/triggers/0/id", "duplicate-id")
        ]


def test_a_disabled_api_trigger_takes_no_id() -> None:
    doc = document(
        triggers=[schedule(id="manual"), {"type": "api", "id": "manual", "enabled": False}]
    )
    assert [t.id for t in read_draft(doc).schedules] == ["manual"]
    assert not read_draft(doc).api_enabled


def test_schedules_of_one_id_are_duplicates_even_when_disabled() -> None:
    doc = document(triggers=[schedule(), schedule(enabled=False), schedule(id="b")])
    assert faults(doc) == [("/triggers/1/id", "duplicate-id")]


@pytest.mark.parametrize(
    "expression", ["", " ", "* * * *", "60 * * * *", "* * * * *\0", "@weakly", "*" * 256]
)
def test_an_expression_that_cron_refuses_is_refused(expression: str) -> None:
    assert faults(document(triggers=[schedule(expression=expression)])) == [
        ("/triggers/0/expression", "invalid")
    ]


def test_only_the_white_space_of_an_expression_changes() -> None:
    doc = document(triggers=[schedule(expression=" \t0  3\n* *\u3000MON ")])
    assert read_draft(doc).schedules[0].expression == "0 3 * * MON"


# --- values can't exist invalid ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Target("acme", "main", "release"),
        lambda: Target("acme/shop", "..", "release"),
        lambda: Target("acme/shop", "main", "../x"),
        lambda: ScheduleTrigger("A", True, "* * * * *"),
        lambda: ScheduleTrigger("a", True, "nonsense"),
        lambda: Draft(" ", None, Target(**TARGET), False),
        lambda: Draft("n", "\0", Target(**TARGET), False),
        lambda: Draft("n", None, Target(**TARGET), False, (_at("a"), _at("a"))),
        lambda: Draft("n", None, Target(**TARGET), True, (_at("manual"),)),
        lambda: Automation("A", "0" * 64, Draft("n", None, Target(**TARGET), False)),
        lambda: Automation("a", "0" * 63, Draft("n", None, Target(**TARGET), False)),
        lambda: Automation("a", "A" * 64, Draft("n", None, Target(**TARGET), False)),
        lambda: Automation("a", "0" * 64 + "\n", Draft("n", None, Target(**TARGET), False)),
    ],
)
def test_no_value_exists_invalid(make: Any) -> None:
    with pytest.raises(InvalidInput):
        make()


def _at(trigger_id: str) -> ScheduleTrigger:
    return ScheduleTrigger(trigger_id, True, "* * * * *")


# --- properties -------------------------------------------------------------------------------------

_ids = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,5}", fullmatch=True)
_texts = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=20)
_spaces = st.text(" \t\n\u00a0\u3000", min_size=1, max_size=3)
_fields = st.sampled_from(["*", "1", "1-5", "*/7", "1,3"])
_expressions = st.builds(
    lambda fields, space: space + space.join(fields) + space,
    st.lists(_fields, min_size=5, max_size=5),
    _spaces,
)


@st.composite
def good_documents(draw: st.DrawFn) -> dict[str, Any]:
    api = draw(st.sampled_from([None, True, False]))
    ids = draw(st.lists(_ids.filter(lambda i: i != "manual"), max_size=4, unique=True))
    triggers = [
        schedule(id=i, enabled=draw(st.booleans()), expression=draw(_expressions)) for i in ids
    ]
    if api is not None:
        triggers.append({"type": "api", "id": "manual", "enabled": api})
    made: dict[str, Any] = {
        "name": draw(_texts.filter(lambda t: t.strip())),
        "target": TARGET,
        "triggers": draw(st.permutations(triggers)),
    }
    if draw(st.booleans()):
        made["description"] = draw(st.none() | _texts)
    return made


@given(good_documents())
def test_the_canonical_form_is_idempotent(doc: dict[str, Any]) -> None:
    draft = read_draft(doc)
    again = read_draft(json.loads(canonical_form(draft)))
    assert again == draft
    assert read_draft(canonical_document(draft)) == draft
    assert canonical_form(again) == canonical_form(draft)
    assert revision_of(again) == revision_of(draft)


@given(good_documents(), st.randoms())
def test_the_order_of_triggers_means_nothing(doc: dict[str, Any], order: random.Random) -> None:
    shuffled = list(doc["triggers"])
    order.shuffle(shuffled)
    assert revision_of(read_draft({**doc, "triggers": shuffled})) == revision_of(read_draft(doc))


@given(good_documents(), good_documents())
def test_revisions_are_equal_only_for_equal_definitions(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = read_draft(one), read_draft(other)
    assert (revision_of(first) == revision_of(second)) is (first == second)


_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
_any_json = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "description",
                    "target",
                    "repository",
                    "ref",
                    "workflow",
                    "triggers",
                    "type",
                    "id",
                    "enabled",
                    "expression",
                ]
            )
            | st.text(max_size=5),
            inner
            | st.sampled_from(["api", "schedule", "manual", "acme/shop", "main", "* * * * *"]),
            max_size=6,
        )
    ),
    max_leaves=30,
)
_any_document = _any_json | st.fixed_dictionaries(
    {"name": _any_json, "target": _any_json, "triggers": _any_json | st.lists(_any_json)}
)
_any_trigger = st.fixed_dictionaries(
    {"type": st.sampled_from(["api", "schedule"]) | _any_json, "id": _any_json},
    optional={"enabled": _any_json, "expression": _any_json},
)


@given(_any_document | st.lists(_any_trigger).map(lambda t: document(triggers=t)), st.booleans())
def test_whatever_comes_it_is_a_draft_or_invalid_input(doc: object, required: bool) -> None:
    try:
        draft = read_draft(doc, enabled_required=required)
    except InvalidInput as error:
        assert error.violations
        assert all(v.pointer == "" or v.pointer[0] == "/" for v in error.violations)
    else:
        assert len(revision_of(draft)) == 64
