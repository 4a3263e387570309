"""The history of a call as plain data."""

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
    state_of,
)
from retrykit._core.call_record import Terms
from retrykit._core.failures import ErrorRecord, ResultRecord
from retrykit._core.records import result_to_data
from retrykit._internal.redaction import redact_urls
from retrykit.testing.strategies import durations, seeds

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1, 2, 4], on_result=lambda result: result == "busy")


def state_with_result(result):
    """Return a state with a rejected result."""
    state = RetryState("fetch", seed=7, epoch=0.0)
    state._record.add_failure(Failure(1, None, result, 0.0, 0.0, 1.0))
    return state


def through_json(state):
    """Return a copy of a state, written as JSON and read again."""
    text = json.dumps(state.to_dict(), allow_nan=False)
    return RetryState.from_dict(json.loads(text))


def test_a_state_survives_json(clock, flaky):
    def fetch():
        clock.advance(0.25)
        return outcomes()

    outcomes = flaky(OSError("refused"), "busy", ValueError("bad"))
    state = POLICY.replace(max_attempts=3).run(fetch).state
    again = through_json(state)
    assert again.to_dict() == state.to_dict()
    assert again == through_json(again)
    assert again.failures[1] == state.failures[1]
    assert [str(e) for e in again.errors] == ["OSError: refused", "ValueError: bad"]
    assert (again.stop_reason, again.elapsed) == (StopReason.ATTEMPTS, state.elapsed)
    assert again.started_at == state.started_at


def test_a_state_whose_call_used_its_fallback_is_read_again():
    state = state_with_result("busy")
    state._record.end(StopReason.ATTEMPTS, "max_attempts=1 reached")
    state._record.used_fallback = True
    again = through_json(state)
    assert (again.used_fallback, again.stop_detail) == (True, "max_attempts=1 reached")
    with pytest.raises(ConfigError, match=r"^state.* must be as retrykit wrote it"):
        RetryState.from_dict(state.to_dict() | {"used_fallback": 1})


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
        lambda state, inside: state._replace(nested_state=inside),
        CALLS,
        inner,
    ),
    max_leaves=3,
)


@given(STATES)
def test_any_state_survives_json(state):
    again = through_json(state)
    assert again.to_dict() == state.to_dict()
    assert again == through_json(again) == pickle.loads(pickle.dumps(state))  # noqa: S301
    # The nested state has records of its errors, too.
    terms, known = again._record.terms, state._record.terms
    for name in Terms.__slots__:
        assert getattr(terms, name) == getattr(known, name), name
    if state.nested_state is not None:
        assert again.nested_state.to_dict() == state.nested_state.to_dict()


@given(STATES)
def test_any_failure_survives_json_with_records_of_errors_and_results(state):
    for loaded, original in zip(
        through_json(state).failures, state.failures, strict=True
    ):
        assert loaded._replace(error=None, result=None) == original._replace(
            error=None, result=None
        )
        description = loaded.error and (loaded.error.type, loaded.error.message)
        assert description == (
            original.error
            and (type(original.error).__name__, redact_urls(str(original.error)))
        )
        if isinstance(loaded.result, ResultRecord):
            kind = type(original.result)
            assert kind in {int, float, bytes, list, dict}
            assert loaded.result == ResultRecord(
                kind.__name__, redact_urls(repr(original.result))[:200]
            )
        else:
            assert loaded.result == original.result
            assert type(loaded.result) is type(original.result)


def test_the_stored_state_of_a_running_call_does_not_change(clock):
    def fetch():
        clock.advance(2)
        state = through_json(current_state())
        clock.advance(2)
        return state.elapsed, state.status

    assert POLICY.call(fetch) == (2.0, "running")


def test_the_record_of_an_error_has_type_message_and_traceback():
    def fetch():
        try:
            {}["key"]
        except KeyError as cause:
            error = json.JSONDecodeError("no value", "", 0)
            error.add_note("from the shop")
            raise error from cause

    record = through_json(POLICY.run(fetch).state).errors[0]
    assert record.type == "json.decoder.JSONDecodeError"
    assert record.message == "no value: line 1 column 1 (char 0)"
    lines = record.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines.index("KeyError: 'key'") < lines.index("from the shop")
    assert "raise error from cause" in record.traceback


def test_a_record_without_a_message_is_shown_by_its_type():
    assert str(ErrorRecord("OSError", "", "")) == "OSError"


@pytest.mark.parametrize("result", [None, True, 7, 0.5, "busy"])
def test_plain_results_are_stored_unchanged(result):
    assert through_json(state_with_result(result)).failures[0].result == result


@pytest.mark.parametrize("result", [math.nan, -math.inf])
def test_infinity_and_nan_are_stored_as_records(result):
    record = through_json(state_with_result(result)).failures[0].result
    assert record == ResultRecord("float", repr(result))


class Page:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Page({self.text!r})"


def test_other_results_are_stored_as_type_and_repr():
    state = through_json(state_with_result(Page("x" * 300)))
    record = ResultRecord(f"{__name__}.Page", f"Page('{'x' * 194}")
    assert state.failures[0].result == record
    assert through_json(state) == state


class SilentError(Exception):
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


class UnformattableError(SyntaxError):
    """An error whose traceback cannot be formatted."""

    def __init__(self):
        super().__init__("odd", ("file.py", 1, "text", 2, 3, 4))
        self.text = 5


@pytest.mark.parametrize(
    "error", [SilentError(), UnformattableError()], ids=["silent", "odd"]
)
def test_an_error_that_cannot_be_formatted_does_not_lose_the_others(flaky, error):
    state = (
        POLICY.replace(on=Exception)
        .run(flaky(OSError("busy"), error, error, error))
        .state
    )
    first, second, *_ = through_json(state).errors
    assert (first.type, first.message) == ("OSError", "busy")
    assert second.type == f"{__name__}.{type(error).__name__}"


def test_an_unprintable_error_of_a_predicate_does_not_replace_the_users_error(flaky):
    def is_busy(_error):
        raise SilentError

    error = OSError("refused")
    with pytest.raises(OSError, match="refused") as caught:
        Policy(on=is_busy).call(flaky(error))
    assert caught.value is error
    assert "SilentError" in error.__notes__[0]


def test_a_result_whose_repr_fails_is_stored_by_its_type():
    record = through_json(state_with_result(SilentError())).failures[0].result
    assert record.type == f"{__name__}.SilentError"


def test_a_pickled_state_has_records_of_errors(flaky):
    state = POLICY.run(flaky(OSError("busy"), OSError(), OSError(), OSError())).state
    again = pickle.loads(pickle.dumps(state))  # noqa: S301  pickled here
    assert again == through_json(state)
    assert isinstance(again.errors[0], ErrorRecord)


def test_a_retry_error_shows_the_type_of_an_unprintable_error(flaky):
    policy = Policy(max_attempts=1, raises="retry_error")
    with pytest.raises(RetryError) as caught:
        policy.call(flaky(SilentError()))
    assert "SilentError" in str(caught.value)


def nested_data(depth):
    """Return the data of so many nested states."""
    data = None
    for _ in range(depth):
        data = DATA | {"nested_state": data}
    return data


DATA = state_with_result("busy").to_dict()
FAILED = DATA["failures"][0]
# A state that waits in a queue may have been written before these were added.
ADDED = {
    "hedges": 0,
    "max_attempts": None,
    "retry_in": None,
    "stop_detail": None,
    "used_fallback": False,
}
ERROR = {"type": "OSError", "message": "busy", "traceback": ""}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="nothing"),
        pytest.param([DATA], id="a list"),
        pytest.param(DATA | {"version": 2}, id="another version"),
        pytest.param(DATA | {"version": True}, id="a version that is not a number"),
        pytest.param(DATA | {"version": 1.0}, id="a version that is a float"),
        pytest.param(DATA | {"color": "red"}, id="an unknown key"),
        pytest.param(DATA | {"now": 5}, id="a clock"),
        pytest.param(DATA | {5: 5}, id="a key that is not a string"),
        pytest.param(DATA | {"stop_reason": "bored"}, id="an unknown reason"),
        pytest.param(DATA | {"failures": None}, id="no failures"),
        pytest.param(DATA | {"failures": [5]}, id="an invalid failure"),
        pytest.param(
            DATA | {"failures": [FAILED | {"x": 5}]}, id="an unknown key of a failure"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"error": {}}]}, id="an incomplete error"
        ),
        pytest.param(DATA | {"failures": ""}, id="failures that are not a list"),
        pytest.param(
            DATA | {"failures": [FAILED | {"error": ERROR | {"message": 5}}]},
            id="a message that is not a string",
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": ["busy"]}]}, id="an invalid result"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": math.nan}]}, id="NaN as a result"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"result": {"record": {}, "x": 5}}]},
            id="an invalid record",
        ),
        pytest.param(DATA | {"attempt": "three"}, id="an attempt that is not a number"),
        pytest.param(DATA | {"seed": None}, id="a seed that is not a number"),
        pytest.param(DATA | {"elapsed_at_end": "1h"}, id="a time that is not a number"),
        pytest.param(DATA | {"name": 5}, id="a name that is not a string"),
        pytest.param(DATA | {"rule_counts": [-1]}, id="a negative count"),
        pytest.param(DATA | {"rule_counts": None}, id="no counts"),
        pytest.param(DATA | {"rule_counts": {}}, id="counts that are not a list"),
        pytest.param(
            DATA | {"elapsed_at_end": 10**400}, id="a time too large for a float"
        ),
        pytest.param(DATA | {"elapsed_at_end": -1}, id="a negative time"),
        pytest.param(DATA | {"total_delay": -1}, id="a negative total delay"),
        pytest.param(DATA | {"attempt_started": -1}, id="a negative start"),
        pytest.param(DATA | {"max_elapsed": -1}, id="a negative limit"),
        pytest.param(DATA | {"epoch": -1}, id="a call before 1970"),
        pytest.param(DATA | {"epoch": 1e300}, id="a call after the year 9999"),
        pytest.param(DATA | {"attempt": -1}, id="no attempt"),
        pytest.param(DATA | {"attempt": 10**13}, id="too many attempts"),
        pytest.param(DATA | {"seed": 10**400}, id="a seed too large for JSON"),
        pytest.param(DATA | {"max_failures": -1}, id="a negative max_failures"),
        pytest.param(
            DATA | {"dropped_failures": -1}, id="a negative number of dropped failures"
        ),
        pytest.param(
            DATA | {"rule_counts": [2]}, id="more failures by rules than in total"
        ),
        pytest.param(DATA | {"failures": [FAILED | {"attempt": 0}]}, id="attempt 0"),
        pytest.param(nested_data(2000), id="states nested too deep"),
        pytest.param(DATA | {"retry_cost": -1}, id="a negative cost"),
        pytest.param(DATA | {"depth": -1}, id="a negative depth"),
        pytest.param(DATA | {"nested_state": {}}, id="an invalid nested state"),
        pytest.param(
            DATA | {"failures": [FAILED | {"rule": -1}]}, id="a negative rule"
        ),
        pytest.param(
            DATA | {"failures": [FAILED | {"hint": -1}]}, id="a negative hint"
        ),
        *(
            pytest.param({k: v for k, v in DATA.items() if k != key}, id=f"no {key}")
            for key in DATA
            if key not in ADDED
        ),
        pytest.param(DATA | {"max_attempts": 0}, id="a limit of no attempts"),
        pytest.param(DATA | {"max_attempts": True}, id="a limit that is not a number"),
        pytest.param(DATA | {"stop_detail": 5}, id="a detail that is not a string"),
        pytest.param(DATA | {"used_fallback": 1}, id="an answer that is not a bool"),
    ],
)
def test_malformed_data_is_rejected(data):
    with pytest.raises(ConfigError, match=r"^state.* must be as retrykit wrote it"):
        RetryState.from_dict(data)


@pytest.mark.parametrize("missing", [*ADDED, None])
def test_data_may_lack_what_was_added_later(missing):
    lacking = ADDED if missing is None else {missing: ADDED[missing]}
    full = DATA | {"max_attempts": 5, "stop_detail": "busy", "used_fallback": True}
    data = {key: value for key, value in full.items() if key not in lacking}
    assert RetryState.from_dict(data).to_dict() == full | lacking


TIMES = ["next_delay", "elapsed_at_end", "total_delay", "epoch"]


@pytest.mark.parametrize("part", TIMES)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), True])
def test_an_invalid_number_is_rejected(part, number):
    data = RetryState("fetch", seed=7, epoch=0.0).to_dict()
    with pytest.raises(ConfigError, match="as retrykit wrote it"):
        RetryState.from_dict(data | {part: number})


def test_a_negative_delay_is_rejected():
    data = RetryState("fetch", seed=7, epoch=0.0).to_dict()
    with pytest.raises(ConfigError, match="as retrykit wrote it"):
        RetryState.from_dict(data | {"next_delay": -5.0})


class StrSubclass(StrEnum):
    FETCH = "fetch"


class FloatSubclass(float):
    pass


def test_subclasses_of_str_and_float_are_stored_as_plain_values():
    def delays():
        yield FloatSubclass(1)
        yield FloatSubclass(2)

    state = Policy(schedule=delays, name=StrSubclass.FETCH).run(int, "text").state
    again = RetryState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert (again.name, again.total_delay) == ("fetch", 3.0)
    assert pickle.loads(pickle.dumps(state)).name == "fetch"  # noqa: S301


def test_an_integer_of_thousands_of_digits_is_stored_as_a_record():
    state = state_with_result(10**5000)
    again = RetryState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert again.failures[0].result.type == "int"


class Unprintable:
    def __repr__(self):
        raise ZeroDivisionError


class Failing:
    """A result whose attributes fail, as those of a lazy proxy may."""


@pytest.mark.parametrize("name", ["__class__", "__dict__"])
def test_a_result_whose_attributes_fail_is_shown_by_its_type(name):
    kind = type("Failing", (Failing,), {name: property(lambda _: 1 / 0)})
    state = state_with_result(kind())
    data = state.to_dict()["failures"][0]["result"]["record"]
    assert data["type"] == f"{__name__}.Failing"
    assert f"type {__name__}.Failing" in state.failures[0].describe()


def test_a_result_that_cannot_be_printed_is_shown_by_its_type():
    failure = Failure(1, None, Unprintable(), 0.0, 0.0, None)
    assert failure.describe() == f"a rejected result of type {__name__}.Unprintable"
    record = result_to_data(failure.result)["record"]
    assert record["text"] == "<ZeroDivisionError while formatting>"


def test_a_state_differs_from_what_is_none():
    state = RetryState("fetch", 7, 0.0)
    assert state != "fetch"
    assert state == RetryState("fetch", 7, 0.0)


def test_a_retry_error_can_be_made_of_its_text_as_celery_does():
    with pytest.raises(RetryError) as caught:
        POLICY.replace(schedule=[0]).call(lambda: "busy")
    text = repr(caught.value.args[0])
    assert str(RetryError(text)) == text
    assert state_of(RetryError(text)) is None
