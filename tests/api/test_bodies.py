"""What is and what is not JSON, and bodies that are too large or of another type."""

import json

import pytest

from app.api import bodies
from app.api.problems import Refusal
from tests.support.api import Api, assert_problem, definition

DEEP = 100_000


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b" ", "line 1"),
        (b"{", "line 1, column 2"),
        (b"{} x", "Extra data"),
        (b"{'a': 1}", "double quotes"),
        (b'{"a": 1,}', "column"),
        (b'{"a": 1, "a": 1}', "'a' twice"),
        (b'{"b": {"a": 1, "a": 2}}', "'a' twice"),
        (b'[{"\\u0061": 1, "a": 2}]', "'a' twice"),
        (b'{"a": NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "too large"),
        (b"[-1e999]", "too large"),
        (b"9" * 5000, "too large"),
        (b"-" + b"9" * 5000, "too large"),
        (b"[" * 101 + b"]" * 101, "100 levels"),
        (b"[" * DEEP + b"]" * DEEP, "100 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "100 levels"),
        (b"[" * DEEP, "100 levels"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'["\\ude00\\ud83d"]', "surrogate"),
        (b'"\xff"', "Byte 1 is not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b'"\xc0\x80"', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "not UTF-8"),
        ("{}".encode("utf-32-le"), "line 1"),
        (b'"a\nb"', "control character"),
        (b'"a\x00b"', "control character"),
        (b"01", "Extra data"),
        (b"+1", "line 1"),
        (b".5", "line 1"),
        (b"1.", "Extra data"),
        (b"0x10", "Extra data"),
        (b"nul", "line 1"),
        (b"// x\n{}", "line 1"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None,
)
def test_what_is_no_json_is_refused_with_the_reason(api: Api, raw: bytes, said: str) -> None:
    for path in ("/automations", "/cron/preview", "/tokens"):
        document = assert_problem(api.post(path, raw=raw), 400, "malformed-json")
        assert said in document["detail"]
    assert api.get("/automations").json["data"] == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1.5,
        10**299,
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        [],
        {},
    ],
)
def test_what_is_json_is_read(value: object) -> None:
    assert bodies.parse(json.dumps(value).encode()) == value


def test_a_hundred_levels_are_read() -> None:
    raw = b"[" * 100 + b"]" * 100
    assert bodies.parse(raw)


def test_brackets_in_strings_are_not_levels() -> None:
    assert bodies.parse(json.dumps(["[" * 200, '\\"[' * 200]).encode()) == ["[" * 200, '\\"[' * 200]


def test_the_pair_of_two_surrogates_is_a_character() -> None:
    assert bodies.parse(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_json_is_refused_without_a_request_too() -> None:
    with pytest.raises(Refusal):
        bodies.parse(b"{")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/merge-patch+json",
        "application/json; charset=latin-1",
        "application/jsonx",
        "json",
        "",
    ],
)
def test_another_content_type_is_refused_and_the_right_one_named(
    api: Api, content_type: str
) -> None:
    answer = api.post("/automations", definition(id="x"), content_type=content_type)
    document = assert_problem(answer, 415, "unsupported-media-type")
    assert "application/json" in document["detail"]
    assert answer.headers["Accept"] == "application/json"


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", ";charset=UTF-8", '; charset="utf-8"'])
def test_utf_8_may_be_named(api: Api, charset: str) -> None:
    answer = api.post("/automations", definition(id="x"), content_type=f"application/json{charset}")
    assert answer.status_code == 201


def test_a_compressed_body_is_refused(api: Api) -> None:
    answer = api.post("/automations", definition(id="x"), headers={"Content-Encoding": "gzip"})
    assert_problem(answer, 415, "unsupported-media-type")
    assert answer.headers["Accept-Encoding"] == "identity"


def test_a_merge_patch_has_a_type_of_its_own(api: Api) -> None:
    revision = api.create()
    headers = {"If-Match": f'"{revision}"'}
    answer = api.patch(
        "/automations/nightly", {"name": "x"}, headers=headers, content_type="application/json"
    )
    assert_problem(answer, 415, "unsupported-media-type")
    assert answer.headers["Accept-Patch"] == "application/merge-patch+json"


def test_a_body_of_one_mebibyte_is_taken_and_one_byte_more_is_not(api: Api) -> None:
    limit = 1024 * 1024
    frame = len(json.dumps(definition(id="x", description="")))
    fits = json.dumps(definition(id="x", description="")) + " " * (limit - frame)
    assert api.post("/automations", raw=fits.encode()).status_code == 201
    answer = api.post("/automations", raw=fits.encode() + b" ")
    assert_problem(answer, 413, "content-too-large")
