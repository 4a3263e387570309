"""Retried gRPC calls of the sync client."""

import socket
import weakref

import grpc
import pytest

from retrykit import ConfigError, Policy, StopReason, retry, state_of
from retrykit._core.timeouts import AsArgument
from retrykit.hints import first_of, grpc_pushback
from retrykit.hints.grpc import StatusCodes
from retrykit.integrations import grpc as retries
from retrykit.integrations.grpc import RetryInterceptor, policy, retry_after, transient
from retrykit.testing import virtual_time
from tests._support.grpc_server import DOWN, Fails, retrying_channel, shop, stub

QUICK = {"schedule": [0.001] * 9, "max_attempts": 3}


class Watching(grpc.UnaryUnaryClientInterceptor):
    """An interceptor that sees every attempt."""

    def __init__(self):
        self.details = []

    def intercept_unary_unary(self, continuation, details, request):
        self.details.append(details)
        return continuation(details, request)


def test_policy_adds_the_condition_and_the_hint():
    assert policy().on == transient == StatusCodes(["UNAVAILABLE"])
    assert policy().hint == retries.retry_after == grpc_pushback()
    hint = first_of(grpc_pushback(), lambda error: 1)
    assert policy(Policy(hint=hint)).hint == hint


def test_policy_keeps_the_on_of_a_policy():
    base = Policy(on=OSError)
    expected = base.replace(max_attempts=2, hint=retry_after)
    assert policy(base, max_attempts=2) == expected


def test_policy_does_not_restore_a_setting_that_was_removed():
    merged = policy(hint=None)
    assert policy(merged) == merged


@pytest.mark.parametrize(
    "code", [each.name for each in grpc.StatusCode if each.value[0]]
)
def test_only_unavailable_is_retried(code):
    with (
        shop([Fails(code)], [b"milk"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        if code == "UNAVAILABLE":
            assert stub(channel)(b"?") == b"milk"
        else:
            with pytest.raises(grpc.RpcError) as caught:
                stub(channel)(b"?")
            assert caught.value.code().name == code
            assert state_of(caught.value).stop_reason is StopReason.NOT_RETRYABLE
            assert cart.attempts() == 1


def test_the_call_object_of_a_successful_call_has_its_state():
    with (
        shop([DOWN], [DOWN], [b"milk"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        response, call = stub(channel).with_call(b"?")
    state = state_of(call)
    assert (response, state.attempt, len(state.failures)) == (b"milk", 3, 2)
    assert (state.name, state.stop_reason) == ("shop.Cart/Get", StopReason.SUCCEEDED)
    assert call.code() is grpc.StatusCode.OK
    assert call.details() == ""
    assert tuple(call.trailing_metadata()) == tuple(call.initial_metadata()) == ()


def test_raises_the_last_error_of_grpc_with_its_state_and_a_note():
    with (
        shop([DOWN], [DOWN], [Fails("UNAVAILABLE", "1")]) as cart,
        retrying_channel(cart, **QUICK) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?")
    error = caught.value
    assert isinstance(error, grpc.Call)
    assert (error.code().name, error.details()) == ("UNAVAILABLE", "by the script")
    assert ("grpc-retry-pushback-ms", "1") in tuple(error.trailing_metadata())
    assert state_of(error).attempt == 3
    assert error.__notes__[0].startswith("retrykit: gave up after 3 attempts in ")


def test_sends_the_number_of_previous_attempts():
    with (
        shop([DOWN], [DOWN], [b"milk"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        stub(channel)(b"?", metadata=(("trace", "7"),))
    assert [each.previous_attempts for each in cart.seen] == [None, "1", "2"]
    assert [each.metadata["trace"] for each in cart.seen] == ["7"] * 3


@pytest.mark.parametrize("method", ["Get", "List"])
def test_metadata_from_an_iterator_are_sent_with_every_attempt(method):
    with (
        shop([DOWN], [DOWN], [b"milk"]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        metadata = iter([("trace", "7")])
        assert b"milk" in [*stub(channel, method)(b"?", metadata=metadata), b"milk"]
    assert [each.metadata["trace"] for each in cart.seen] == ["7"] * 3


def test_obeys_the_pushback_of_a_server():
    answers = [Fails("UNAVAILABLE", "7000")], [b"milk"]
    with (
        shop(*answers) as cart,
        retrying_channel(cart) as channel,
        virtual_time() as clock,
    ):
        assert stub(channel)(b"?") == b"milk"
    assert clock.sleeps == [7.0]


def test_a_pushback_can_stop_retries():
    with (
        shop([Fails("UNAVAILABLE", "-1")]) as cart,
        retrying_channel(cart) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?")
    assert state_of(caught.value).stop_reason is StopReason.GAVE_UP


def test_each_attempt_has_the_remaining_time_of_its_call():
    with (
        shop([DOWN], [DOWN], [b"milk"]) as cart,
        retrying_channel(cart, schedule=[40, 50]) as channel,
        virtual_time(),
    ):
        stub(channel)(b"?", timeout=100)
    assert [each.time_remaining for each in cart.seen] == pytest.approx(
        [100, 60, 10], abs=3
    )


@pytest.mark.parametrize("deadline", ["stop", "clip", "overshoot"])
def test_no_attempt_starts_after_the_timeout_of_its_call(deadline):
    with (
        shop([DOWN]) as cart,
        retrying_channel(
            cart, schedule=[20], max_elapsed=60, deadline=deadline
        ) as channel,
        virtual_time() as clock,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?", timeout=10)
    assert clock.sleeps == []
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


@pytest.mark.parametrize("deadline", ["stop", "clip"])
def test_a_max_elapsed_shorter_than_the_timeout_is_kept(deadline):
    with (
        shop([DOWN]) as cart,
        retrying_channel(
            cart, schedule=[20], max_elapsed=10, deadline=deadline
        ) as channel,
        virtual_time() as clock,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?", timeout=100)
    assert clock.sleeps == []
    assert state_of(caught.value).stop_reason is StopReason.ELAPSED


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_call_with_a_timeout_of_zero_is_made_once(timeout):
    with (
        shop() as cart,
        retrying_channel(cart, on=grpc.RpcError) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub(channel)(b"?", timeout=timeout)
    assert state_of(caught.value).attempt == 1


@pytest.mark.parametrize("on", [Exception, transient, (OSError, ValueError)])
@pytest.mark.parametrize("timeout", [0.4, AsArgument(0.4, name="seconds")])
def test_an_attempt_that_times_out_is_retried(on, timeout):
    with (
        shop([0.9, b"late"], [b"milk"]) as cart,
        retrying_channel(cart, on=on, attempt_timeout=timeout, schedule=[0]) as channel,
    ):
        assert stub(channel)(b"?", timeout=5) == b"milk"
    assert [each.time_remaining < 0.5 for each in cart.seen] == [True, True]


@pytest.mark.parametrize("on", [transient, grpc.RpcError])
def test_an_attempt_timeout_does_not_change_the_other_conditions(on):
    with (
        shop([DOWN], [b"milk"]) as cart,
        retrying_channel(cart, on=on, attempt_timeout=5, schedule=[0]) as channel,
    ):
        assert stub(channel)(b"?") == b"milk"


def test_a_predicate_keeps_its_name_beside_an_attempt_timeout(caplog):
    def returns_none(error):
        isinstance(error, grpc.RpcError)

    with (
        shop([DOWN]) as cart,
        retrying_channel(
            cart, on=returns_none, attempt_timeout=5, schedule=[0]
        ) as channel,
        pytest.raises(grpc.RpcError),
    ):
        stub(channel)(b"?")
    assert "<locals>.returns_none returned None, neither True nor False" in caplog.text


def test_an_attempt_timeout_retries_no_other_deadline_errors():
    with (
        shop([Fails("INTERNAL")]) as cart,
        retrying_channel(cart, attempt_timeout=5) as channel,
        pytest.raises(grpc.RpcError),
    ):
        stub(channel)(b"?")
    assert cart.seen[0].time_remaining < 6


@pytest.mark.parametrize(
    ("methods", "attempts"),
    [
        (["shop.Cart/Get"], 3),
        (["/shop.Cart/Get"], 3),
        (["shop.Cart"], 3),
        (["shop.Cart/"], 3),
        (["shop.Cart/List", "shop"], 1),
    ],
    ids=["by name", "by path", "by service", "by path of service", "not named"],
)
@pytest.mark.parametrize("method", ["Get", "List"])
def test_only_the_listed_methods_are_retried(method, methods, attempts):
    named = [each.replace("Get", method) for each in methods]
    if attempts == 1:
        named = ["shop.Cart/Add", "shop"]
    with (
        shop(*[[DOWN]] * 3) as cart,
        retrying_channel(cart, methods=named, **QUICK) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        list(stub(channel, method)(b"?"))
    assert cart.attempts() == attempts
    assert (state_of(caught.value) is None) == (attempts == 1)


def test_a_refused_connection_is_retried():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            retrying_channel(address, **QUICK) as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            stub(channel)(b"?")
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert state_of(caught.value).attempt == 3


def test_other_interceptors_see_every_attempt_with_the_callers_metadata():
    seen = Watching()
    with (
        shop([DOWN], [b"milk"]) as cart,
        retrying_channel(cart, seen, **QUICK) as channel,
    ):
        compression = grpc.Compression.Gzip
        stub(channel)(b"?", 5, wait_for_ready=True, compression=compression)
    first, second = seen.details
    assert (first.timeout, first.metadata) == (5, None)
    assert 0 < second.timeout < 5
    assert (first.wait_for_ready, second.wait_for_ready) == (True, True)
    assert first.compression is second.compression is compression


def test_an_error_of_another_interceptor_is_raised():
    class Broken(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, details, request):
            msg = "no token"
            raise LookupError(msg)

    with (
        retrying_channel("127.0.0.1:1", Broken(), **QUICK) as channel,
        pytest.raises(LookupError, match="no token"),
    ):
        stub(channel)(b"?")


def test_a_future_is_returned_at_once_and_not_retried():
    with shop([0.2, DOWN]) as cart, retrying_channel(cart, schedule=[9]) as channel:
        future = stub(channel).future(b"?")
        assert not future.done()
        assert future.exception().code() is grpc.StatusCode.UNAVAILABLE
    assert cart.attempts() == 1
    assert state_of(future) is None


def test_a_future_that_has_already_failed_is_not_waited_for():
    class Waiting(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, details, request):
            outcome = continuation(details, request)
            outcome.exception()
            return outcome

    with (
        shop([DOWN]) as cart,
        retrying_channel(cart, Waiting(), schedule=[9]) as channel,
        virtual_time() as clock,
    ):
        assert stub(channel).future(b"?").done()
    assert (clock.sleeps, cart.attempts()) == ([], 1)


@pytest.mark.parametrize("method", ["Get", "List"])
def test_a_decorated_caller_does_not_multiply_retries(method):
    with shop(*[[DOWN]] * 9) as cart, retrying_channel(cart, **QUICK) as channel:

        @retry(policy(**QUICK))
        def fetch():
            return list(stub(channel, method)(b"?"))

        with pytest.raises(grpc.RpcError) as caught:
            fetch()
    assert cart.attempts() == 3
    assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_failed_attempts_are_freed_with_the_last_error():
    with (
        shop([DOWN], [DOWN], [DOWN]) as cart,
        retrying_channel(cart, **QUICK) as channel,
    ):
        errors = any_error(stub(channel))
        assert [each() for each in errors] == [None] * 3


def any_error(call):
    try:
        call(b"?")
    except grpc.RpcError as error:
        return [weakref.ref(each) for each in state_of(error).errors]


@pytest.mark.parametrize("methods", ["shop.Cart", ["shop.Cart/Get/All"], [5], [""]])
def test_methods_must_be_a_list_of_full_names(methods):
    with pytest.raises(ConfigError, match="method"):
        RetryInterceptor(methods=methods)


@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.parametrize("setting", ["on", "give_up_on"])
def test_async_predicates_are_rejected(setting, timeout):
    async def async_condition(error):
        return True

    with pytest.raises(ConfigError, match=rf"^{setting} must .* async_interceptors "):
        RetryInterceptor(attempt_timeout=timeout, **{setting: async_condition})
