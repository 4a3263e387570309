"""Schedules as strings: parsed, never evaluated."""

import inspect
import sys

import pytest
from hypothesis import given

from retrykit import ConfigError, presets, schedules as s
from retrykit.schedules._parsing import parse_schedule
from retrykit.testing.strategies import schedules

WRITTEN = {
    "1s, 5s, 1m": s.sequence([1, 5, 60]),
    " 500ms,1h30m ": s.sequence([0.5, 5400]),
    "[]": s.sequence([]),
    '[1, 5, "1m"]': s.sequence([1, 5, 60]),
    "[0.5]": s.sequence([0.5]),
    'exponential("500ms", factor=2).cap("30s").full_jitter()': s.exponential(0.5)
    .cap(30)
    .full_jitter(),
    "constant(15) + polynomial(4) + linear(30).full_jitter()": (
        presets.zizq().schedule
    ),
    "constant(wait='5s')": s.constant(5),
    "constant(1) | linear(2) & fibonacci()": s.constant(1)
    | s.linear(2) & s.fibonacci(),
    "(constant(1) | linear(2)) & fibonacci()": (s.constant(1) | s.linear(2))
    & s.fibonacci(),
    "linear(1) * 2": s.linear(1) * 2,
    "0.5 * linear(1)": s.linear(1) * 0.5,
    "linear(1) | [1, '2s']": s.linear(1) | [1, 2],
    "sequence([9]).then([1, 2])": s.sequence([9]).then([1, 2]),
    "constant(9).switch(after=2, to=linear(1))": s.constant(9).switch(
        after=2, to=s.linear(1)
    ),
    "constant(9).full_jitter().without_jitter()": s.constant(9),
    "exponential(1)\n    .cap(3)\r\n\t.take(2)\n": s.exponential(1).cap(3).take(2),
}


@pytest.mark.parametrize(("text", "schedule"), WRITTEN.items(), ids=WRITTEN)
def test_a_schedule_is_read_from_a_string(text, schedule):
    assert parse_schedule(text) == schedule


@given(schedules())
def test_any_schedule_is_read_from_its_repr(schedule):
    assert parse_schedule(repr(schedule)) == schedule


@given(schedules(max_leaves=2))
def test_whitespace_is_ignored(schedule):
    text = repr(schedule).replace(",", " , ").replace("(", "(  ").replace(")", "\n)")
    assert parse_schedule(text) == schedule


def test_every_constructor_and_method_is_known():
    methods = {
        name
        for name, method in vars(s.Schedule).items()
        if inspect.isfunction(method)
        and inspect.get_annotations(method).get("return") == "Schedule"
        and not name.startswith("_")
    }
    with pytest.raises(ConfigError) as caught:
        parse_schedule("linear(1).color()")
    assert set(error_of(caught)) == methods
    with pytest.raises(ConfigError) as caught:
        parse_schedule("color()")
    others = {"Schedule", "ScheduleLike"}
    assert set(error_of(caught)) == set(s.__all__) - others


def error_of(caught):
    return caught.value.message.partition(" are ")[2].split(", ")


MADE = "schedule must be made of constructors, methods and operators of schedules, got"
NOT_ALLOWED = {
    '__import__("os").system("x")': "__import__",
    "os.system('x')": "os",
    "eval('linear(1)')": "eval",
    "Schedule()": "Schedule",
    "from_dict([1])": "from_dict",
    "schedules.linear(1)": "schedules",
    "linear(print)": "print",
    "linear(1).__class__.__mro__()": "linear(1).__class__",
    "().__class__.__bases__[0]()": "().__class__.__bases__[0]",
    "linear(1).cap.__func__.__globals__": "linear(1).cap.__func__.__globals__",
    "(lambda: linear(1))()": "lambda: linear(1)",
    "[x for x in (1,)]": "[x for x in (1,)]",
    "linear(sum(x for x in [1]))": "sum",
    "linear(1) if 1 else linear(2)": "linear(1) if 1 else linear(2)",
    "(y := linear(1))": "(y := linear(1))",
    "f'{linear(1)}' + linear(1)": "f'{linear(1)}'",
    "'a' * 10**9 + linear(1)": "10 ** 9",
    "linear(10**10**10)": "10 ** 10 ** 10",
    "linear(1 + 1)": "1 + 1",
    "linear(1) - linear(1)": "linear(1) - linear(1)",
    "linear(1) @ linear(1)": "linear(1) @ linear(1)",
    "~linear(1)": "~linear(1)",
    "linear(1)[0]": "linear(1)[0]",
    "linear(1), linear(2)": "(linear(1), linear(2))",
    "linear(1) < linear(2)": "linear(1) < linear(2)",
    "linear(1) and linear(2)": "linear(1) and linear(2)",
    "linear(None)": "None",
    "linear(...)": "...",
    "linear(b'1')": "b'1'",
    "linear(1j)": "1j",
    "linear({1})": "{1}",
    "linear({})": "{}",
    "linear(*[1])": "*[1]",
    "linear(**{'step': 1})": "{'step': 1}",
    "linear(step=1, step=2)": "linear(step=1, step=2)",
    "linear(1).cap": "linear(1).cap",
    "[1] + linear(1)": "[1] + linear(1)",
    "sequence([1], repeat_last=None)": "None",
    "(await linear(1))": "await linear(1)",
    "()": "()",
}


@pytest.mark.parametrize(("text", "named"), NOT_ALLOWED.items(), ids=NOT_ALLOWED)
def test_an_unknown_part_of_a_schedule_is_named(text, named):
    with pytest.raises(ConfigError) as caught:
        parse_schedule(text)
    assert caught.value.message.partition(";")[0] == f"{MADE} {named!r}"


def test_no_code_is_run(tmp_path):
    ran = tmp_path / "ran"
    assert "this" not in sys.modules
    for text in (
        "__import__('this')",
        f"open({str(ran)!r}, 'w')",
        f"linear(open({str(ran)!r}, 'w'))",
        f"linear(1).cap(open({str(ran)!r}, 'w'))",
    ):
        with pytest.raises(ConfigError):
            parse_schedule(text)
    assert "this" not in sys.modules
    assert not ran.exists()


METHODS = "schedule must be made with the methods of schedules, got"
WRONG = {
    "linear(1).__init__(2)": f"{METHODS} '.__init__'",
    "linear(1).to_dict()": f"{METHODS} '.to_dict'",
    "linear(1).draw()": f"{METHODS} '.draw'",
    "'x'.join([])": f"{METHODS} '.join'",
    "linear(1).fulljitter()": f"{METHODS} '.fulljitter'; did you mean full_jitter?",
    "exponentail(1)": f"{MADE} 'exponentail'; did you mean exponential(...)?",
    "linear": "got 'linear'; did you mean linear(...)?",
    "linear + (constant(1))": f"{MADE} 'linear'; did you mean linear(...)?",
    "exponential(1, factr=2)": "schedule must be made with exponential(first, factor), "
    "got 'exponential(1, factr=2)'; did you mean factor?",
    "exponential(1, 2)": "too many positional arguments",
    "linear()": "missing a required argument: 'step'",
    "linear(1).full_jitter(2)": "schedule must be made with full_jitter(), got",
    "linear(**5)": "schedule must be made with linear(step, first), got 'linear(**5)'",
    "linear(-1)": "step must be a finite number >= 0, got -1",
    "linear(True)": "step must be a finite number >= 0, got True",
    "linear(1e999)": "step must be a finite number >= 0, got inf",
    "linear(1).cap('soon')": "limit must be a duration such as",
    "linear(1) * '2'": "factor must be a finite number >= 0, got '2'",
    "linear(1) * linear(2)": "factor must be a finite number >= 0, got linear(2.0)",
    "linear(1) + 5": "schedule must be a schedule, a re-iterable of durations",
    "linear(1).then([1])": "schedule must be finite, since .then() starts",
    "sequence([1], repeat_last=true)": f"{MADE} 'true'; write True",
    "sequence([1], repeat_last=false)": f"{MADE} 'false'; write False",
    "sequence([1], repeat_last=1)": "repeat_last must be a bool, got 1",
    "sequence([1], True)": "too many positional arguments",
    "(5)": "write constant(...) for the same delay each time",
    "": "schedule must be delays such as",
    "soon": "schedule must be delays such as",
    "1s, soon": "schedule[1] must be a duration such as",
    "1s,": "schedule[1] must be a duration such as",
    "1, 5": "schedule[0] must be a duration such as",
    "[1, -5]": "schedule[1] must be a finite number >= 0, got -5",
    "linear(1": "schedule must be an expression, got 'linear(1'; '(' was never closed",
    "linear(1))": "schedule must be an expression, got",
    "import os; linear(1)": "schedule must be an expression, got",
    "linear(1)\x00": "schedule must be an expression, got",
    "linear(" + "9" * 5000 + ")": "schedule must be an expression, got",
    f"linear(1).take(0x{'f' * 4000})": "retries must be an integer >= 0 and <= "
    "9007199254740991, got <int that cannot be shown>",
    f"linear(1).switch(5, 0x{'f' * 4000})": "schedule must be made with switch(after, "
    "to), got 'an integer of thousands of digits'",
    f"linear(1) - 0x{'f' * 4000}": f"{MADE} 'an integer of thousands of digits'",
}


@pytest.mark.parametrize(
    ("text", "message"), WRONG.items(), ids=[text[:40] for text in WRONG]
)
def test_a_misspelled_schedule_is_rejected_with_a_suggestion(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_schedule(text)
    assert message in caught.value.message


HUGE = {
    "parentheses": "(" * 50_000,
    "minus signs": "-" * 50_000 + "linear(1)",
    "a sum": " + ".join(["linear(1)"] * 5_000),
    "methods": "linear(1)" + ".cap(1)" * 9_000,
    "one method too many": "linear(1)" + ".cap(1)" * 100,
    "lists": "[" * 103 + "]" * 103,
    "long": "1s, " * 100_000,
    "lambdas": "lambda: " * 5_000 + "linear(1)",
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_a_schedule_nested_too_deeply_has_a_short_error(text):
    with pytest.raises(ConfigError) as caught:
        parse_schedule(text)
    assert len(caught.value.message) < 500


def test_a_hundred_levels_are_read():
    text = "linear(1.0)" + ".cap(1.0)" * 99
    assert repr(parse_schedule(text)) == text


@pytest.mark.parametrize(
    "text", ["constant(1if)", "constant(0xfor x)", r"constant('\d')", "constant(3.is)"]
)
def test_a_string_causes_no_syntax_warning(text, recwarn):
    with pytest.raises(ConfigError):
        parse_schedule(text)
    assert not recwarn.list
