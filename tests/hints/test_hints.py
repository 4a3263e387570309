"""Reading hints, and the built-in hints and their strings."""

import copy
import logging
import math
import pickle
from datetime import timedelta

import pytest

from retrykit import ConfigError, GiveUp, RetryAfter
from retrykit.hints import (
    attribute,
    first_of,
    grpc_pushback,
    hint_named,
    milliseconds,
    name_of_hint,
    reset_at,
    retry_after,
)
from retrykit.hints.base import check_hint, read_hint
from retrykit.schedules.randomness import MAX_DELAY

READY = {
    "retry_after": retry_after(),
    "milliseconds:x-amz-retry-after": milliseconds("X-Amz-Retry-After"),
    "grpc_pushback": grpc_pushback(),
    "attribute:response.wait": attribute("response.wait"),
    "attribute:wait:ms": attribute("wait", unit="ms"),
    "reset_at:ratelimit-reset": reset_at("RateLimit-Reset"),
    "milliseconds:retry-after-ms, retry_after": (
        first_of(milliseconds("retry-after-ms"), retry_after())
    ),
}

every_ready_hint = pytest.mark.parametrize("text", READY)


class Answer:
    def __await__(self):
        yield


class Hostile:
    """Every attribute raises."""

    def __getattribute__(self, name):
        raise ZeroDivisionError(name)


class HostileError(Exception):
    def __getattr__(self, name):
        raise ZeroDivisionError(name)


class Holding:
    """Its attribute has attributes that raise."""

    def __init__(self):
        self.response = self.headers = self.wait = Hostile()


class Remote:
    """A proxy of a remote object, which has every attribute."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args):
        return self

    def __getitem__(self, key):
        return self


class RemoteError(Remote, Exception):
    pass


async def later(_error=None):
    return 1.0


def answering(answer):
    def hint(outcome):
        return answer

    return hint


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (None, None),
        (0, 0.0),
        (2, 2.0),
        (2.5, 2.5),
        ("1m30s", 90.0),
        (timedelta(milliseconds=5), 0.005),
        (math.inf, MAX_DELAY),
        (10**400, MAX_DELAY),
    ],
    ids=repr,
)
def test_a_hint_asks_for_a_time_in_seconds(answer, asked, caplog):
    caplog.set_level(logging.DEBUG)
    assert read_hint(answering(answer), OSError(), None) == asked
    assert caplog.records == []


@pytest.mark.parametrize("signal", [RetryAfter(2), GiveUp()])
def test_a_hint_may_answer_with_a_signal(signal, caplog):
    assert read_hint(answering(signal), OSError(), None) is signal
    assert caplog.records == []


def test_a_hint_is_asked_about_a_result_too():
    assert read_hint(lambda page: page["wait"], {"wait": 3}, None) == 3.0


@pytest.mark.parametrize(
    "answer",
    [-1, -0.5, -math.inf, math.nan, True, "soon", "-1s", "5", b"5", [5], object()],
    ids=lambda answer: repr(answer)[:8],
)
def test_an_answer_that_is_no_delay_asks_for_nothing_and_warns_once(answer, caplog):
    assert read_hint(answering(answer), OSError(), None) is None
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("retrykit", "WARNING")
    assert "answering.<locals>.hint is ignored" in record.getMessage()
    assert "the schedule's delay is kept: its answer must be" in record.getMessage()
    assert f"got {answer!r}" in record.getMessage()


@pytest.mark.parametrize("answer", [later, Answer])
def test_an_answer_that_must_be_awaited_asks_for_nothing(answer, caplog):
    # An unclosed coroutine is a warning, and so an error of this suite.
    assert read_hint(lambda _: answer(), OSError(), None) is None
    (record,) = caplog.records
    assert "must be a delay, not an awaitable" in record.getMessage()


def test_a_hint_that_raises_asks_for_nothing_and_warns_once(caplog):
    def broken(error):
        raise ZeroDivisionError("no\ntime")

    error = OSError("refused")
    assert read_hint(broken, error, error) is None
    (record,) = caplog.records
    assert "it raised ZeroDivisionError: no\ntime" in record.getMessage()
    assert record.getMessage().endswith("ZeroDivisionError: no\ntime")
    assert (error.args, error.__traceback__) == (("refused",), None)
    assert not hasattr(error, "__notes__")


def test_a_hint_that_raises_about_a_result_asks_for_nothing(caplog):
    assert read_hint(lambda page: page["wait"], {}, None) is None
    (record,) = caplog.records
    assert "it raised KeyError: 'wait'" in record.getMessage()


def test_a_hint_that_raises_the_error_itself_leaves_its_traceback_as_it_is(caplog):
    def again(error):
        raise error

    def fetch():
        raise OSError

    try:
        fetch()
    except OSError as error:
        trace = error.__traceback__
        assert read_hint(again, error, error) is None
        assert error.__traceback__ is trace
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_goes_through_a_hint(kind):
    def stopped(_):
        raise kind

    with pytest.raises(kind):
        read_hint(stopped, OSError(), None)


def test_a_hint_without_a_name_is_told_as_it_is(caplog):
    class Wrong:
        def __init__(self):
            self.__qualname__ = 5

        def __call__(self, outcome):
            return "soon"

        def __repr__(self):
            return "Wrong()"

    assert read_hint(Wrong(), OSError(), None) is None
    assert read_hint(attribute("strerror"), OSError(1, "soon"), None) is None
    told = [record.getMessage().partition(" is ")[0] for record in caplog.records]
    assert told == ["hint Wrong()", "hint attribute('strerror')"]


@pytest.mark.parametrize("hint", [*READY.values(), len, answering(1), Answer.__await__])
def test_functions_of_the_outcome_are_hints(hint):
    assert check_hint("hint", hint) is hint


@every_ready_hint
def test_a_ready_hint_prints_as_what_builds_it(text):
    assert eval(repr(READY[text])) == READY[text]  # noqa: S307


@every_ready_hint
def test_a_ready_hint_has_a_text_that_names_it(text):
    assert name_of_hint(READY[text]) == text
    assert hint_named(text) == READY[text]


@every_ready_hint
def test_a_ready_hint_is_a_value(text):
    hint = READY[text]
    assert hash(hint_named(text)) == hash(hint)
    assert [other for other in READY.values() if other == hint] == [hint]
    again = pickle.loads(pickle.dumps(hint))  # noqa: S301
    assert again == copy.deepcopy(hint) == hint


@every_ready_hint
@pytest.mark.parametrize(
    "kind",
    [int, str, dict, OSError, Hostile, HostileError, Holding, Remote, RemoteError],
)
def test_an_outcome_that_asks_for_nothing_hurts_nobody(text, kind, caplog):
    caplog.set_level(logging.DEBUG)
    assert READY[text](kind()) is None
    assert caplog.records == []


def test_a_text_of_a_hint_may_have_spaces_around_its_parts():
    assert hint_named(" retry_after ,grpc_pushback") == first_of(
        retry_after(), grpc_pushback()
    )


def test_a_hint_of_the_users_has_no_text():
    with pytest.raises(ConfigError, match=r"leave it out, and add it with .replace"):
        name_of_hint(first_of(retry_after(), len))


def test_the_first_hint_that_asks_for_something_is_taken():
    asked = []

    def hint(answer):
        return lambda outcome: asked.append(answer) or answer

    both = first_of(hint(None), hint(0), hint(7))
    assert both(OSError()) == 0.0
    assert asked == [None, 0]


def test_a_broken_hint_is_passed_over(caplog):
    def broken(outcome):
        raise outcome

    error = OSError()
    signal = GiveUp()
    assert first_of(broken, answering("soon"), answering(signal))(error) is signal
    assert len(caplog.records) == 2
    assert error.__traceback__ is None
    assert first_of(answering(-1), answering(2))("result") == 2.0


def test_hints_in_hints_are_one_list_of_them():
    ready = retry_after()
    nested = first_of(first_of(ready, len), grpc_pushback())
    assert nested == first_of(ready, len, grpc_pushback())
    assert first_of(ready) is ready


class WaitingError(Exception):
    def __init__(self, wait):
        self.wait = wait
        self.response = self


@pytest.mark.parametrize(
    ("hint", "wait", "asked"),
    [
        (attribute("wait"), 2, 2.0),
        (attribute("wait"), 0, 0.0),
        (attribute("wait"), "2m", 120.0),
        (attribute("wait"), timedelta(seconds=3), 3.0),
        (attribute("response.response.wait"), 2.5, 2.5),
        (attribute("wait", unit="ms"), 2, 0.002),
        (attribute("wait", unit="ms"), 1500.0, 1.5),
        (attribute("wait", unit="ms"), math.inf, MAX_DELAY),
        (attribute("wait", unit="ms"), timedelta(seconds=3), 3.0),
        (attribute("wait", unit="ms"), "2s", 2.0),
        (attribute("wait"), None, None),
        (attribute("wait"), ValueError, None),
        (attribute("wait.seconds"), 2, None),
        (attribute("delay"), 2, None),
    ],
    ids=str,
)
def test_an_attribute_is_read_in_its_unit(hint, wait, asked, caplog):
    assert read_hint(hint, WaitingError(wait), None) == asked
    assert caplog.records == []


@pytest.mark.parametrize("wait", [-1, math.nan, True, "soon"], ids=repr)
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_an_attribute_that_is_no_delay_asks_for_nothing_and_warns(wait, unit, caplog):
    assert read_hint(attribute("wait", unit), WaitingError(wait), None) is None
    assert len(caplog.records) == 1


class RpcError(Exception):
    """A minimal gRPC error."""

    def __init__(self, *metadata):
        self.metadata = metadata

    def trailing_metadata(self):
        return self.metadata


KEY = "grpc-retry-pushback-ms"


@pytest.mark.parametrize(
    ("value", "delay"),
    [("0", 0.0), ("1", 0.001), ("1500", 1.5), (str(2**31 - 1), 2147483.647)],
    ids=str,
)
def test_a_server_of_grpc_says_when_to_retry(value, delay):
    """ASCII encoded signed 32-bit integer ... how many milliseconds to wait."""
    answer = grpc_pushback()(RpcError(("other", "5"), (KEY, value)))
    assert isinstance(answer, RetryAfter)
    assert answer.delay == delay


@pytest.mark.parametrize(
    "value",
    ["-1", "-0", "+1", "", "soon", "1.5", " 1", "007", "٣", str(2**31), "9" * 5000],
    ids=lambda value: ascii(value)[:12],
)
def test_a_server_of_grpc_says_not_to_retry(value):
    """If the value is negative or unparseable: do not retry at all."""
    assert isinstance(grpc_pushback()(RpcError((KEY, value))), GiveUp)


def test_the_longest_pushback_is_taken_and_a_refusal_before_all():
    answer = grpc_pushback()(RpcError((KEY, "10"), (KEY, "20"), (KEY, "15")))
    assert answer.delay == 0.02
    assert isinstance(grpc_pushback()(RpcError((KEY, "10"), (KEY, "-1"))), GiveUp)


def test_an_error_of_grpc_without_pushback_asks_for_nothing():
    class SilentError(RpcError):
        def trailing_metadata(self):
            return None

    class UnusualError(RpcError):
        def trailing_metadata(self):
            return [(KEY, "5", "more")]

    hint = grpc_pushback()
    assert [hint(error) for error in (RpcError(), SilentError(), UnusualError())] == [
        None
    ] * 3


def test_a_call_of_grpc_that_has_not_failed_is_not_waited_for():
    class Call:
        def trailing_metadata(self):
            raise AssertionError

    class Remembering(Call):
        asked = False

        def trailing_metadata(self):
            self.asked = True

    call = Remembering()
    assert grpc_pushback()(call) is None
    assert not call.asked
