"""Policies in the address of the HTML report: written and read by its script."""

import json
from zipfile import BadZipFile

import pytest
from hypothesis import Phase, given, settings, strategies as st

from retrykit import Policy, Rule, presets, schedules as s
from retrykit.analysis.html_report._policy_data import policy_data
from retrykit.config.rendering import to_data
from retrykit.schedules._parsing import parse_schedule
from retrykit.testing import strategies
from tests._support.page_scripts import run_in_node
from tests._support.schedule_data import schedule_data

POLICIES = {
    "zizq": presets.zizq(),
    "a & b": Policy(schedule=[1, 2.5], max_elapsed="1h", deadline="clip", on=OSError),
    "polls": Policy(schedule=s.linear(-1, first=9).at_least(2), max_attempts=None),
}
CHANGES = """
const changed = given[0].map((policy, index) => ({
  ...policy, max_attempts: index + 3, max_elapsed: 2.5, deadline: "overshoot",
}));
"""


def data(policies):
    found = [policy_data(name, policy) for name, policy in policies.items()]
    return json.loads(json.dumps(found))


def read(address, policies):
    """Return the policies of an address as data, and the time of an attempt."""
    return run_in_node(
        "try { return readAddress(given[0], given[1], 0); }"
        "catch (error) { return error instanceof InvalidInput ? error.message : 0; }",
        address,
        data(policies),
    )


@pytest.mark.thorough
@settings(max_examples=2, phases=[Phase.explicit, Phase.generate])
@given(st.lists(strategies.schedules(), min_size=60, max_size=120))
def test_a_schedule_is_read_from_its_repr(drawn):
    texts = [*map(repr, drawn)]
    read_again = "return given[0].map((text) => expression(parseSchedule(text)))"
    assert run_in_node(read_again, texts) == texts


def test_an_address_has_the_whole_policies():
    address = run_in_node(f"{CHANGES} return addressOf(changed, 2)", data(POLICIES))
    found = read(address, POLICIES)
    expected = run_in_node(f"{CHANGES} return changed", data(POLICIES))
    assert found == {"policies": expected, "attempt": 2}


def test_an_address_is_readable():
    policy = Policy(
        schedule=s.exponential(0.1).full_jitter(), max_attempts=6, on=OSError
    )
    address = run_in_node("return addressOf(given[0], 0)", data({"fetch": policy}))
    assert address == (
        "policy=fetch&schedule=exponential(0.1,%20factor%3D2.0).full_jitter()"
        "&max_attempts=6&max_elapsed=unlimited&deadline=stop&on=%22OSError%22"
    )
    assert to_data(policy)["on"] == "OSError"


def test_part_of_a_policy_is_enough():
    found = read(
        "max_attempts=9&schedule=constant('2s')%20%2B%20uniform(0,1)", POLICIES
    )
    first, *others = found["policies"]
    assert first["max_attempts"] == 9
    assert first["schedule"] == schedule_data(s.constant(2) + s.uniform(0, 1))
    assert others == data(POLICIES)[1:]


@pytest.mark.thorough
def test_a_preset_is_kept_while_it_can_make_the_policy():
    kept = "schedule=" + str(presets.zizq(base=3).schedule).replace("+", "%2B")
    found = read(f"{kept}&max_attempts=4", POLICIES)["policies"][0]
    assert found["preset"]["name"] == "zizq"
    for lost in ("schedule=constant(1)", "max_attempts=unlimited"):
        assert read(lost, POLICIES)["policies"][0]["preset"] is None
    for text in ("sequence([1.0, 2.0])", "linear(3.0)"):
        assert read(f"schedule={text}", {"own": POLICIES["polls"]})["policies"][0]


def test_the_constructors_of_a_schedule_are_imported_with_the_others():
    rules = [Rule(on=BadZipFile, schedule=s.constant(5))]
    policies = {
        "ruled": Policy(schedule=s.linear(1) + s.constant(2).cap(3), rules=rules),
        "alone": POLICIES["polls"],
    }
    for policy, text in zip(
        policies.values(),
        run_in_node("return given[0].map(pythonText)", data(policies)),
        strict=True,
    ):
        names = {}
        exec(text, names)  # noqa: S102  under test
        assert names["policy"] == policy
    assert (
        "from retrykit import Policy\nfrom retrykit.schedules import linear\n" in text
    )


UNREADABLE = {
    "max_attempts=0": "max_attempts must be an integer >= 1, got 0",
    "max_elapsed=-3": "max_elapsed must be a finite number >= 0, got -3",
    "attempt=soon": "attempt must be a duration",
    "deadline=toString": "deadline must be one of stop, clip, overshoot, got 'toStr",
    "policy=nobody": "policy must be one of 'zizq', 'a & b', 'polls', which are on",
    "outage": "each part must be name=value, got 'outage'",
    "schedule=%zz": "schedule must be percent-encoded text",
    "max_attemps=3": "max_attemps must be left out, got 3; the page changes schedule",
    "policy=a%20%26%20b": 'on must be "OSError", got nothing',
    "policy=a%20%26%20b&on=%22KeyError%22": 'on must be "OSError", got "KeyError"',
}
EXPRESSIONS = {
    "": 'delays such as "1s, 5s, 1m", or an expression',
    "constant(1": "write , or )",
    "sequence([1": "write , or ]",
    "constant(1))": "it ends too late",
    "constant(": "it ends too soon",
    "constant": 'delays such as "1s, 5s, 1m", or an expression',
    "constant.cap(1)": "write (",
    "exponential()": "give exponential first",
    "exponential(factor=2)": "give exponential first",
    "uniform(1)": "give uniform high",
    "1, 2": 'schedule[0] must be a duration such as "12.5s"',
    "1s,": "schedule[1] must be a duration",
    "[1] + constant(1)": "write the schedule before the operator",
    "sequence([], repeat_last=True)": "give a last delay to repeat",
    "sequence('1s')": "write a list",
    "constant([1])": "an expression of schedules",
    "constant(1, 2)": "constant takes wait",
    "constant(1, wiat=2)": "constant takes wait",
    "constant(-1)": "wait must be a finite number >= 0, got -1",
    "constant('1 month')": "wait must be a duration",
    "constant(constant(1))": "an expression of schedules",
    "constructor(1)": "an expression of schedules",
    "cap(1)": "an expression of schedules",
    "constant(1).sum(2)": "the methods are at_least, cap",
    "constant(1).then([1])": "schedule must be finite",
    "constant(1).then(constant(2))": "schedule must be finite",
    "(1 + 2)": "an expression of schedules",
    "constant(1) @ 2": "an expression, got ' @ 2'",
    "(" * 200: "write at most 100 levels",
    "(" + "1" * 10_000: "at most 10000 characters, got 10001",
}
AS_ON_THE_COMMAND_LINE = [
    "1s,5s,1m",
    " 500ms , 1 s ",
    "[1, '5s']",
    "[]",
    "exponential(0.5).cap(20).full_jitter()",
    "exponential(first='500ms')",
    *("decay(1)", "decorrelated(1)", "fibonacci()", "google_interval()", "linear(5)"),
    *("polly_interval()", "polynomial(2)", "sequence([1])", "constant(1).cap(limit=2)"),
    "sequence([1, 5], repeat_last=True)",
    "sequence([1, 5], repeat_last=False)",
    "2 * constant(1)",
    "constant(1) + [1, 2]",
    "constant(1).take(2).then([1, '5s'])",
    "constant(1).take(2).then(other=constant(5))",
    "constant(1).switch(after=2, to=[1])",
    "(uniform(1, 3) + decorrelated(1).jitter(0.5)).cap(9).without_jitter()",
    "(google_interval() | polly_interval().equal_jitter()).without_jitter()",
]


@pytest.mark.parametrize("address", UNREADABLE)
def test_what_cannot_be_read_is_named(address):
    assert UNREADABLE[address] in read(address, POLICIES)


def test_a_schedule_is_read_as_on_the_command_line():
    script = "return given[0].map((text) => expression(parseSchedule(text)))"
    expected = [repr(parse_schedule(text)) for text in AS_ON_THE_COMMAND_LINE]
    assert run_in_node(script, AS_ON_THE_COMMAND_LINE) == expected


def test_expressions_that_cannot_be_read_are_told_why():
    found = run_in_node(
        "return given[0].map((text) => {"
        "  try { return parseSchedule(text).kind; }"
        "  catch (error) { return error instanceof InvalidInput && error.message; }"
        "})",
        [*EXPRESSIONS],
    )
    for (text, reason), message in zip(EXPRESSIONS.items(), found, strict=True):
        assert reason in str(message), text
