"""Arguments and results of jobs as JSON."""

import datetime as dt
import decimal
import json
import math

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError
from retrykit.durable._json_payloads import as_json, from_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PLAIN = st.none() | st.booleans() | st.integers() | TEXTS
PLAIN |= st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    PLAIN, lambda part: st.lists(part) | st.dictionaries(TEXTS, part), max_leaves=20
)


@given(VALUES)
def test_loads_as_an_equal_value(value):
    assert from_json("args", as_json("args", value)) == value
    assert from_json("args", as_json("args", value).encode()) == value


def test_converts_tuples_to_lists():
    assert from_json("args", as_json("args", (1, (2, ())))) == [1, [2, []]]


class Host:
    def __repr__(self):
        return "Host()"


def circle():
    value = []
    value.append({"again": value})
    return value


INVALID = {
    "a set": ({1}, "args must be JSON-serializable"),
    "bytes": (b"x", "args must be JSON-serializable"),
    "an object": ({"to": [Host()]}, r"args['to'][0] must be JSON-serializable"),
    "a date": ([dt.date.max], "args[0] must be JSON-serializable"),
    "a decimal": (decimal.Decimal(1), "args must be JSON-serializable"),
    "no number": ([math.nan], "args[0] must be a finite number, got nan"),
    "infinity": ({"a": -math.inf}, "args['a'] must be a finite number, got -inf"),
    "keys that are numbers": ({1: 2}, "args must be a dict with string keys"),
    "the character 0": (["a\0"], "args[0] must be a string without NUL"),
    "half a character": (["\ud800"], "args[0] must be encodable as UTF-8"),
    "an odd key": ({"\0": 1}, "a key of args must be a string without NUL"),
    "itself": (circle(), "args must be JSON-serializable"),
    "a very long integer": (10**5000, "args must be JSON-serializable"),
}


@pytest.mark.parametrize(("value", "message"), INVALID.values(), ids=INVALID)
def test_rejects_values_that_are_not_json_and_names_them(value, message):
    with pytest.raises(ConfigError) as caught:
        as_json("args", value)
    assert caught.value.message.startswith(message)
    assert len(caught.value.message) < 700


@given(VALUES.filter(lambda value: isinstance(value, list | dict)))
def test_rejects_truncated_text(value):
    text = as_json("args", value)
    for cut in range(len(text)):
        with pytest.raises(ConfigError, match="args must be valid JSON text"):
            from_json("args", text[:cut])


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "-Infinity", "", "{]", b"\xff\xfe\x00", "[" * 10**5, "1 2"],
    ids=lambda text: repr(text)[:20],
)
def test_rejects_invalid_json(text):
    with pytest.raises(ConfigError, match="args must be valid JSON text, got"):
        from_json("args", text)


@pytest.mark.needs("deep recursion")
@pytest.mark.parametrize(
    ("text", "fault"),
    {
        '{"a": "b': "it is cut off after 8 characters",
        '{"a": [1,': "it is cut off after 9 characters",
        '{"a"': "it is cut off after 4 characters",
        " ": "it is empty",
        '{"a": b}': "it is damaged at character 7",
        "[NaN]": "NaN is not valid JSON",
        b"\xff\xfe\x00": "it is damaged",
        "[" * 10**5: "it is damaged",
        "1" * 9999: "it is damaged",
    }.items(),
    ids=lambda text: repr(text)[:20],
)
def test_says_what_is_wrong_with_a_text(text, fault):
    with pytest.raises(ConfigError) as caught:
        from_json("args", text)
    assert caught.value.message.endswith(f"; {fault}")


@pytest.mark.parametrize("text", [None, 7, {}, ["[]"]], ids=repr)
def test_rejects_other_types(text):
    with pytest.raises(ConfigError, match="args must be JSON text, got"):
        from_json("args", text)


@given(st.text() | st.binary())
def test_reads_json_or_raises(text):
    try:
        value = from_json("args", text)
    except ConfigError:
        return
    assert value == json.loads(text)
