"""Histories of calls as plain data, for other processes and other days."""

import dataclasses
import json
import math
import pickle
from enum import StrEnum

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    ConfigError,
    Failure,
    Policy,
    RetryError,
    RetryState,
    StopReason,
    current_state,
)
from retrykit.state.records import ErrorRecord, ResultRecord, result_to_data
from retrykit.testing.strategies import durations, seeds

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1, 2, 4], on_result=lambda result: result == "busy")


def refused(result):
    """A state with this result on its list."""
    state = RetryState("fetch", seed=7, epoch=0.0)
    state.record(Failure(1, None, result, 0.0, 0.0, 1.0))
    return state


def stored(state):
    """The state after it went through JSON."""
    text = json.dumps(state.to_dict(), allow_nan=False)
    return RetryState.from_dict(json.loads(text))


def test_a_state_comes_back_from_json_as_data(clock, flaky):
    def fetch():
        clock.advance(0.25)
        return outcomes()

    outcomes = flaky(OSError("refused"), "busy", ValueError("bad"))
    state = POLICY.replace(max_attempts=3).run(fetch).state
    again = stored(state)
    assert again.to_dict() == state.to_dict()
    assert again == stored(again)
    assert again.failures[1] == state.failures[1]
    assert [str(e) for e in again.errors] == ["OSError: refused", "ValueError: bad"]
    assert (again.stop_reason, again.elapsed) == (StopReason.ATTEMPTS, state.elapsed)
    assert again.started_at == state.started_at


COUNTS = st.integers(1, 10**6)
RESULTS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
RESULTS |= st.binary() | st.lists(st.integers()) | st.dictionaries(st.text(), st.none())
FAILURES = st.builds(
    Failure,
    COUNTS,
    st.none() | st.builds(OSError, st.text()) | st.builds(KeyError, RESULTS),
    RESULTS,
    durations(),
    durations(),
    st.none() | durations(),
    rule=st.none() | st.integers(0, 9),
    hint=st.none() | durations(),
)
CALLS = st.builds(
    RetryState,
    st.text(),
    seeds(),
    epoch=st.floats(0, 253_402_300_799),
    max_elapsed=st.none() | durations(),
    max_failures=COUNTS,
    attempt=st.integers(2 * 10**6, 10**12),
    attempt_started=durations(),
    failures=st.lists(FAILURES, max_size=3).map(tuple),
    dropped_failures=st.integers(9, 10**6),
    total_delay=durations(),
    next_delay=st.none() | durations(),
    stop_reason=st.none() | st.sampled_from(StopReason),
    elapsed_at_end=durations(),
    rule_counts=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    retry_cost=st.none() | durations(),
    depth=st.integers(0, 9),
)
STATES = st.recursive(
    CALLS,
    lambda inner: st.builds(
        lambda state, inside: dataclasses.replace(state, nested_state=inside),
        CALLS,
        inner,
    ),
    max_leaves=3,
)


@given(STATES)
def test_any_state_comes_back_from_json_as_data(state):
    again = stored(state)
    assert again.to_dict() == state.to_dict()
    assert again == stored(again) == pickle.loads(pickle.dumps(state))  # noqa: S301
    # An inner state comes back as this one does: with records for its errors.
    odd = {"failures", "nested_state", "read_clock", "started_at_clock"}
    for name in set(RetryState.__slots__) - odd:
        assert getattr(again, name) == getattr(state, name)
    if state.nested_state is not None:
        assert again.nested_state.to_dict() == state.nested_state.to_dict()


@given(STATES)
def test_any_failure_comes_back_from_json_with_records_of_what_is_no_data(state):
    for came, was in zip(stored(state).failures, state.failures, strict=True):
        assert came._replace(error=None, result=None) == was._replace(
            error=None, result=None
        )
        told = came.error and (came.error.type, came.error.message)
        assert told == (was.error and (type(was.error).__name__, str(was.error)))
        if isinstance(came.result, ResultRecord):
            kind = type(was.result)
            assert kind in {int, float, bytes, list, dict}
            assert came.result == ResultRecord(kind.__name__, repr(was.result)[:200])
        else:
            assert came.result == was.result
            assert type(came.result) is type(was.result)


def test_a_state_of_a_running_call_stands_still_once_it_is_stored(clock):
    def fetch():
        clock.advance(2)
        state = stored(current_state())
        clock.advance(2)
        return state.elapsed, state.status

    assert POLICY.call(fetch) == (2.0, "running")


def test_a_record_of_an_error_tells_its_type_its_text_and_its_traceback():
    def fetch():
        try:
            {}["key"]
        except KeyError as cause:
            error = json.JSONDecodeError("no value", "", 0)
            error.add_note("from the shop")
            raise error from cause

    record = stored(POLICY.run(fetch).state).errors[0]
    assert record.type == "json.decoder.JSONDecodeError"
    assert record.message == "no value: line 1 column 1 (char 0)"
    lines = record.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines.index("KeyError: 'key'") < lines.index("from the shop")
    assert "raise error from cause" in record.traceback


def test_a_record_without_a_text_prints_as_its_type():
    assert str(ErrorRecord("OSError", "", "")) == "OSError"


@pytest.mark.parametrize("result", [None, True, 7, 0.5, "busy"])
def test_plain_results_are_kept_as_they_are(result):
    assert stored(refused(result)).failures[0].result == result


@pytest.mark.parametrize("result", [math.nan, -math.inf])
def test_numbers_that_json_does_not_have_are_recorded(result):
    record = stored(refused(result)).failures[0].result
    assert record == ResultRecord("float", repr(result))


class Page:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Page({self.text!r})"


def test_other_results_are_recorded_by_type_and_repr():
    state = stored(refused(Page("x" * 300)))
    record = ResultRecord(f"{__name__}.Page", f"Page('{'x' * 194}")
    assert state.failures[0].result == record
    assert stored(state) == state


class SilentError(Exception):
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


class OddError(SyntaxError):
    """One whose formatted traceback cannot be made."""

    def __init__(self):
        super().__init__("odd", ("file.py", 1, "text", 2, 3, 4))
        self.text = 5


@pytest.mark.parametrize("error", [SilentError(), OddError()], ids=["silent", "odd"])
def test_an_error_that_cannot_be_told_does_not_lose_the_others(flaky, error):
    state = POLICY.run(flaky(OSError("busy"), error, error, error)).state
    first, second, *_ = stored(state).errors
    assert (first.type, first.message) == ("OSError", "busy")
    assert second.type == f"{__name__}.{type(error).__name__}"


def test_a_predicate_whose_error_cannot_be_told_does_not_replace_the_error(flaky):
    def is_busy(_error):
        raise SilentError

    error = OSError("refused")
    with pytest.raises(OSError, match="refused") as caught:
        Policy(on=is_busy).call(flaky(error))
    assert caught.value is error
    assert "SilentError" in error.__notes__[0]


def test_a_result_that_cannot_be_told_is_recorded_by_its_type():
    record = stored(refused(SilentError())).failures[0].result
    assert record.type == f"{__name__}.SilentError"


def test_a_pickled_state_holds_records(flaky):
    state = POLICY.run(flaky(OSError("busy"), OSError(), OSError(), OSError())).state
    again = pickle.loads(pickle.dumps(state))  # noqa: S301  written here
    assert again == stored(state)
    assert isinstance(again.errors[0], ErrorRecord)


def test_a_retry_error_tells_of_an_error_that_cannot_be_told(flaky):
    policy = Policy(max_attempts=1, raises="retry_error")
    with pytest.raises(RetryError) as caught:
        policy.call(flaky(SilentError()))
    assert "SilentError" in str(caught.value)


def nested(depth):
    """A state in a state in a state."""
    data = None
    for _ in range(depth):
        data = DATA | {"nested_state": data}
    return data


DATA = refused("busy").to_dict()
FAILED = DATA["failures"][0]
ERROR = {"type": "OSError", "message": "busy", "traceback": ""}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="nothing"),
        pytest.param([DATA], id="a list"),
        pytest.param(DATA | {"version": 2}, id="another version"),
        pytest.param(DATA | {"version": True}, id="a version that is no number"),
        pytest.param(DATA | {"version": 1.0}, id="a version that is a float"),
        pytest.param(DATA | {"colour": "red"}, id="an unknown key"),
        pytest.param(DATA | {"now": 5}, id="a clock"),
        pytest.param(DATA | {5: 5}, id="a key that is no text"),
        pytest.param(DATA | {"stop_reason": "bored"}, id="an unknown reason"),
        pytest.param(DATA | {"failures": None}, id="no failures"),
        pytest.param(DATA | {"failures": [5]}, id="a failure that is none"),
        pytest.param(DATA | {"failures": [FAILED | {"x": 5}]}, id="an odd failure"),
        pytest.param(DATA | {"failures": [FAILED | {"error": {}}]}, id="half an error"),
        pytest.param(DATA | {"failures": ""}, id="failures that are no list"),
        pytest.param(
            DATA | {"failures": [FAILED | {"error": ERROR | {"message": 5}}]},
            id="a message that is no text",
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": ["busy"]}]}, id="an odd result"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": math.nan}]}, id="an odd number"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": {"record": {}, "x": 5}}]},
            id="an odd record",
        ),
        pytest.param(DATA | {"attempt": "three"}, id="an attempt that is no number"),
        pytest.param(DATA | {"seed": None}, id="a seed that is no number"),
        pytest.param(DATA | {"elapsed_at_end": "1h"}, id="a time that is no number"),
        pytest.param(DATA | {"name": 5}, id="a name that is no text"),
        pytest.param(DATA | {"rule_counts": [-1]}, id="a count below zero"),
        pytest.param(DATA | {"rule_counts": None}, id="no counts"),
        pytest.param(DATA | {"rule_counts": {}}, id="counts that are no list"),
        pytest.param(DATA | {"elapsed_at_end": 10**400}, id="a time no float can tell"),
        pytest.param(DATA | {"elapsed_at_end": -1}, id="a time below zero"),
        pytest.param(DATA | {"total_delay": -1}, id="delays below zero"),
        pytest.param(DATA | {"attempt_started": -1}, id="begun before it began"),
        pytest.param(DATA | {"max_elapsed": -1}, id="a limit below zero"),
        pytest.param(DATA | {"epoch": -1}, id="a call before 1970"),
        pytest.param(DATA | {"epoch": 1e300}, id="a call after the year 9999"),
        pytest.param(DATA | {"attempt": 0}, id="no attempt"),
        pytest.param(DATA | {"attempt": 10**13}, id="more attempts than can be"),
        pytest.param(DATA | {"seed": 10**400}, id="a seed that JSON cannot hold"),
        pytest.param(DATA | {"max_failures": -1}, id="fewer failures than none"),
        pytest.param(DATA | {"dropped_failures": -1}, id="fewer dropped than none"),
        pytest.param(DATA | {"rule_counts": [2]}, id="more by rules than failures"),
        pytest.param(DATA | {"failures": [FAILED | {"attempt": 0}]}, id="attempt 0"),
        pytest.param(nested(2000), id="states nested too deep"),
        pytest.param(DATA | {"retry_cost": -1}, id="a cost below zero"),
        pytest.param(DATA | {"depth": -1}, id="a depth below zero"),
        pytest.param(DATA | {"nested_state": {}}, id="an inner state that is none"),
        pytest.param(DATA | {"failures": [FAILED | {"rule": -1}]}, id="an odd rule"),
        pytest.param(DATA | {"failures": [FAILED | {"hint": -1}]}, id="an odd hint"),
        *(
            pytest.param({k: v for k, v in DATA.items() if k != key}, id=f"no {key}")
            for key in DATA
        ),
    ],
)
def test_malformed_data_is_refused(data):
    with pytest.raises(ConfigError, match=r"state must be a dict from RetryState\."):
        RetryState.from_dict(data)


TIMES = ["next_delay", "elapsed_at_end", "total_delay", "epoch"]


@pytest.mark.parametrize("part", TIMES)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), True])
def test_a_number_that_is_none_is_refused(part, number):
    data = RetryState("fetch", seed=7, epoch=0.0).to_dict()
    with pytest.raises(ConfigError, match="unchanged"):
        RetryState.from_dict(data | {part: number})


def test_a_delay_below_zero_is_refused():
    data = RetryState("fetch", seed=7, epoch=0.0).to_dict()
    with pytest.raises(ConfigError, match="unchanged"):
        RetryState.from_dict(data | {"next_delay": -5.0})


class Name(StrEnum):
    FETCH = "fetch"


class Length(float):
    pass


def test_kinds_of_texts_and_numbers_are_as_good_as_plain_ones():
    def lengths():
        yield Length(1)
        yield Length(2)

    state = Policy(schedule=lengths, name=Name.FETCH).run(int, "text").state
    again = RetryState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert (again.name, again.total_delay) == ("fetch", 3.0)
    assert pickle.loads(pickle.dumps(state)).name == "fetch"  # noqa: S301


def test_an_integer_of_thousands_of_digits_becomes_a_record():
    state = refused(10**5000)
    again = RetryState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert again.failures[0].result.type == "int"


class Unprintable:
    def __repr__(self):
        raise ZeroDivisionError


class Failing:
    """A result whose own attributes fail, as those of a lazy proxy may."""


@pytest.mark.parametrize("name", ["__class__", "__dict__"])
def test_a_result_whose_own_attributes_fail_is_told_all_the_same(name):
    kind = type("Failing", (Failing,), {name: property(lambda _: 1 / 0)})
    state = refused(kind())
    data = state.to_dict()["failures"][0]["result"]["record"]
    assert data["type"] == f"{__name__}.Failing"
    assert f"type {__name__}.Failing" in state.failures[0].describe()


def test_a_result_that_cannot_be_printed_is_told_all_the_same():
    failure = Failure(1, None, Unprintable(), 0.0, 0.0, None)
    assert failure.describe() == f"a rejected result of type {__name__}.Unprintable"
    record = result_to_data(failure.result)["record"]
    assert record["text"] == "<ZeroDivisionError while formatting>"
