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
    hint_to_text,
    milliseconds,
    parse_hint,
    rate_limit,
    reset_at,
    retry_after,
)
from retrykit.hints._base import check_hint, read_hint
from retrykit.schedules._randomness import MAX_DELAY

BUILT_IN = {
    "retry_after": retry_after(),
    "milliseconds:x-amz-retry-after": milliseconds("X-Amz-Retry-After"),
    "grpc_pushback": grpc_pushback(),
    "attribute:response.wait": attribute("response.wait"),
    "attribute:wait:ms": attribute("wait", unit="ms"),
    "reset_at:ratelimit-reset": reset_at("RateLimit-Reset"),
    "rate_limit": rate_limit(),
    "milliseconds:retry-after-ms, retry_after": (
        first_of(milliseconds("retry-after-ms"), retry_after())
    ),
}

every_built_in_hint = pytest.mark.parametrize("text", BUILT_IN)


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


class HostileAttribute:
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


def hint_that_returns(answer):
    def hint(outcome):
        return answer

    return hint


@pytest.mark.parametrize(
    ("answer", "expected"),
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
def test_a_hint_may_return_any_duration(answer, expected, caplog):
    caplog.set_level(logging.DEBUG)
    assert read_hint(hint_that_returns(answer), OSError(), None) == expected
    assert caplog.records == []


@pytest.mark.parametrize("signal", [RetryAfter(2), GiveUp()])
def test_a_hint_may_return_a_signal(signal, caplog):
    assert read_hint(hint_that_returns(signal), OSError(), None) is signal
    assert caplog.records == []


def test_a_hint_reads_a_result():
    assert read_hint(lambda page: page["wait"], {"wait": 3}, None) == 3.0


@pytest.mark.parametrize(
    "answer",
    [-1, -0.5, -math.inf, math.nan, True, "soon", "-1s", "5", b"5", [5], object()],
    ids=lambda answer: repr(answer)[:8],
)
def test_an_invalid_answer_is_ignored_with_a_warning(answer, caplog):
    assert read_hint(hint_that_returns(answer), OSError(), None) is None
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("retrykit", "WARNING")
    assert "hint_that_returns.<locals>.hint is ignored" in record.getMessage()
    assert "the schedule's delay is kept: its answer must be" in record.getMessage()
    assert f"got {answer!r}" in record.getMessage()


@pytest.mark.parametrize("answer", [later, Answer])
def test_an_awaitable_answer_is_ignored_with_a_warning(answer, caplog):
    # An unclosed coroutine is a warning, and so an error of this suite.
    assert read_hint(lambda _: answer(), OSError(), None) is None
    (record,) = caplog.records
    assert "must be a delay, not an awaitable" in record.getMessage()


def test_a_hint_that_raises_is_ignored_with_a_warning(caplog):
    def broken(error):
        raise ZeroDivisionError("no\ntime")

    error = OSError("refused")
    assert read_hint(broken, error, error) is None
    (record,) = caplog.records
    assert "it raised ZeroDivisionError: no\ntime" in record.getMessage()
    assert record.getMessage().endswith("ZeroDivisionError: no\ntime")
    assert (error.args, error.__traceback__) == (("refused",), None)
    assert not hasattr(error, "__notes__")


def test_a_hint_that_raises_for_a_result_is_ignored(caplog):
    assert read_hint(lambda page: page["wait"], {}, None) is None
    (record,) = caplog.records
    assert "it raised KeyError: 'wait'" in record.getMessage()


def test_a_hint_that_raises_the_error_itself_does_not_change_its_traceback(caplog):
    def raise_it(error):
        raise error

    def fetch():
        raise OSError

    try:
        fetch()
    except OSError as error:
        trace = error.__traceback__
        assert read_hint(raise_it, error, error) is None
        assert error.__traceback__ is trace
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_base_exception_in_a_hint_is_raised(kind):
    def stop(_):
        raise kind

    with pytest.raises(kind):
        read_hint(stop, OSError(), None)


def test_a_hint_without_a_name_is_shown_by_its_repr(caplog):
    class Unnamed:
        def __init__(self):
            self.__qualname__ = 5

        def __call__(self, outcome):
            return "soon"

        def __repr__(self):
            return "Wrong()"

    assert read_hint(Unnamed(), OSError(), None) is None
    assert read_hint(attribute("strerror"), OSError(1, "soon"), None) is None
    names = [record.getMessage().partition(" is ")[0] for record in caplog.records]
    assert names == ["hint Wrong()", "hint attribute('strerror')"]


@pytest.mark.parametrize(
    "hint", [*BUILT_IN.values(), len, hint_that_returns(1), Answer.__await__]
)
def test_functions_of_the_outcome_are_hints(hint):
    assert check_hint("hint", hint) is hint


@every_built_in_hint
def test_the_repr_of_a_built_in_hint_builds_it(text):
    assert eval(repr(BUILT_IN[text])) == BUILT_IN[text]  # noqa: S307


@every_built_in_hint
def test_a_built_in_hint_has_a_string_form(text):
    assert hint_to_text(BUILT_IN[text]) == text
    assert parse_hint(text) == BUILT_IN[text]


@every_built_in_hint
def test_a_built_in_hint_is_a_value(text):
    hint = BUILT_IN[text]
    assert hash(parse_hint(text)) == hash(hint)
    assert [other for other in BUILT_IN.values() if other == hint] == [hint]
    raise_it = pickle.loads(pickle.dumps(hint))  # noqa: S301
    assert raise_it == copy.deepcopy(hint) == hint


@every_built_in_hint
@pytest.mark.parametrize(
    "kind",
    [
        int,
        str,
        dict,
        OSError,
        Hostile,
        HostileError,
        HostileAttribute,
        Remote,
        RemoteError,
    ],
)
def test_an_outcome_without_a_hint_is_ignored(text, kind, caplog):
    caplog.set_level(logging.DEBUG)
    assert BUILT_IN[text](kind()) is None
    assert caplog.records == []


def test_the_string_of_a_hint_may_contain_spaces():
    assert parse_hint(" retry_after ,grpc_pushback") == first_of(
        retry_after(), grpc_pushback()
    )


def test_a_custom_hint_has_no_string_form():
    with pytest.raises(ConfigError, match=r"leave it out, and add it with .replace"):
        hint_to_text(first_of(retry_after(), len))


def test_first_of_returns_the_first_answer():
    expected = []

    def hint(answer):
        return lambda outcome: expected.append(answer) or answer

    both = first_of(hint(None), hint(0), hint(7))
    assert both(OSError()) == 0.0
    assert expected == [None, 0]


def test_first_of_skips_a_failing_hint(caplog):
    def broken(outcome):
        raise outcome

    error = OSError()
    signal = GiveUp()
    assert (
        first_of(broken, hint_that_returns("soon"), hint_that_returns(signal))(error)
        is signal
    )
    assert len(caplog.records) == 2
    assert error.__traceback__ is None
    assert first_of(hint_that_returns(-1), hint_that_returns(2))("result") == 2.0


def test_nested_first_of_is_flattened():
    built_in = retry_after()
    nested = first_of(first_of(built_in, len), grpc_pushback())
    assert nested == first_of(built_in, len, grpc_pushback())
    assert first_of(built_in) is built_in


class WaitingError(Exception):
    def __init__(self, wait):
        self.wait = wait
        self.response = self


@pytest.mark.parametrize(
    ("hint", "wait", "expected"),
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
def test_attribute_reads_a_value_in_its_unit(hint, wait, expected, caplog):
    assert read_hint(hint, WaitingError(wait), None) == expected
    assert caplog.records == []


@pytest.mark.parametrize("wait", [-1, math.nan, True, "soon"], ids=repr)
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_attribute_ignores_an_invalid_value_with_a_warning(wait, unit, caplog):
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
def test_grpc_pushback_reads_the_delay(value, delay):
    """ASCII encoded signed 32-bit integer ... how many milliseconds to wait."""
    answer = grpc_pushback()(RpcError(("other", "5"), (KEY, value)))
    assert isinstance(answer, RetryAfter)
    assert answer.delay == delay


@pytest.mark.parametrize(
    "value",
    ["-1", "-0", "+1", "", "soon", "1.5", " 1", "007", "٣", str(2**31), "9" * 5000],
    ids=lambda value: ascii(value)[:12],
)
def test_grpc_pushback_may_stop_retries(value):
    """If the value is negative or unparseable: do not retry at all."""
    assert isinstance(grpc_pushback()(RpcError((KEY, value))), GiveUp)


def test_grpc_pushback_takes_the_longest_delay_and_a_stop_before_all():
    answer = grpc_pushback()(RpcError((KEY, "10"), (KEY, "20"), (KEY, "15")))
    assert answer.delay == 0.02
    assert isinstance(grpc_pushback()(RpcError((KEY, "10"), (KEY, "-1"))), GiveUp)


def test_grpc_pushback_ignores_an_error_without_it():
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


def test_grpc_pushback_does_not_wait_for_a_running_call():
    class Call:
        def trailing_metadata(self):
            raise AssertionError

    class Remembering(Call):
        read = False

        def trailing_metadata(self):
            self.read = True

    call = Remembering()
    assert grpc_pushback()(call) is None
    assert not call.read
