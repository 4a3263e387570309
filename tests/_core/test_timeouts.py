"""Attempt timeouts: as an argument of a function, or around its calls."""

import asyncio
import functools
import inspect
import pickle
import traceback

import pytest

from retrykit import ConfigError
from retrykit._core.attempt_timeout import with_timeout, with_timeout_argument
from retrykit._core.timeouts import AsArgument
from retrykit.errors import AttemptTimeout
from tests._support.optional_trio import trio

FIVE = AsArgument("5s")


def remaining():
    return 2.5


class TestAsArgument:
    def test_is_a_value(self):
        again = pickle.loads(pickle.dumps(FIVE))  # noqa: S301
        assert (again, hash(again)) == (AsArgument(5), hash(FIVE))
        assert AsArgument(5, name="deadline") != FIVE
        assert eval(repr(FIVE)) == FIVE  # noqa: S307

    def test_has_seconds_and_a_parameter(self):
        argument = AsArgument("1m30s", "deadline")
        assert (argument.seconds, argument.name) == (90.0, "deadline")


def plain(url, timeout=None, *, retries=0):
    return url, timeout, retries


def named_only(url, *, timeout):
    return url, timeout


def any_name(url, **kwargs):
    return url, kwargs["timeout"]


def anything(*args, **kwargs):
    return args, kwargs


class Client:
    def get(self, url, timeout):
        return url, timeout

    @classmethod
    def made(cls, url, timeout):
        return url, timeout

    def __call__(self, url, timeout=None):
        return url, timeout


CALLS = {
    "by its place": (plain, ["/"], {}, ("/", 2.5, 0)),
    "beside others": (plain, ["/"], {"retries": 3}, ("/", 2.5, 3)),
    "by its name alone": (named_only, ["/"], {}, ("/", 2.5)),
    "among any names": (any_name, ["/"], {}, ("/", 2.5)),
    "beside any arguments": (anything, [1, 2], {}, ((1, 2), {"timeout": 2.5})),
    "a method": (Client.get, [Client(), "/"], {}, ("/", 2.5)),
    "a bound method": (Client().get, ["/"], {}, ("/", 2.5)),
    "a class method": (Client.made, ["/"], {}, ("/", 2.5)),
    "a callable object": (Client(), ["/"], {}, ("/", 2.5)),
    "a partial": (functools.partial(plain, "/"), [], {}, ("/", 2.5, 0)),
}
GIVEN = {
    "by name": (plain, ["/"], {"timeout": 9}, ("/", 9, 0)),
    "by place": (plain, ["/", 9], {}, ("/", 9, 0)),
    "as None": (plain, ["/", None], {}, ("/", None, 0)),
    "to a method": (Client.get, [Client(), "/", 9], {}, ("/", 9)),
    "to a bound method": (Client().get, ["/", 9], {}, ("/", 9)),
    "among any names": (any_name, ["/"], {"timeout": 9}, ("/", 9)),
}


class TestWithTimeoutArgument:
    @pytest.mark.parametrize("call", CALLS)
    def test_passes_the_remaining_time(self, call):
        fn, args, kwargs, expected = CALLS[call]
        assert with_timeout_argument(fn, FIVE, remaining)(*args, **kwargs) == expected

    @pytest.mark.parametrize("call", GIVEN)
    def test_keeps_the_callers_argument(self, call):
        fn, args, kwargs, expected = GIVEN[call]
        assert with_timeout_argument(fn, FIVE, remaining)(*args, **kwargs) == expected

    def test_computes_the_timeout_for_each_call(self):
        times = iter([5, 3, 1])
        fetch = with_timeout_argument(plain, FIVE, lambda: next(times))
        assert [fetch("/")[1] for _ in range(3)] == [5, 3, 1]

    def test_accepts_a_coroutine_function(self):
        async def fetch(timeout):  # noqa: ASYNC109  like clients
            return timeout

        assert asyncio.run(with_timeout_argument(fetch, FIVE, remaining)()) == 2.5

    def test_accepts_another_parameter_name(self):
        def connect(*, deadline):
            return deadline

        assert (
            with_timeout_argument(connect, AsArgument(5, "deadline"), remaining)()
            == 2.5
        )

    @pytest.mark.parametrize(
        "fn",
        [
            lambda url: url,
            lambda timeout, /: timeout,
            lambda *timeout: timeout,
            functools.partial(plain, "/", 3),
            vars,
        ],
        ids=["none", "by its place only", "as many", "taken already", "unseen"],
    )
    def test_rejects_a_function_without_the_parameter(self, fn):
        with pytest.raises(ConfigError, match="a parameter 'timeout'") as caught:
            with_timeout_argument(fn, FIVE, remaining)
        assert caught.value.__suppress_context__ is (fn is vars)

    def test_its_traceback_leads_to_the_failing_line(self):
        def fetch(timeout):
            raise OSError(timeout)

        with pytest.raises(OSError) as caught:
            with_timeout_argument(fetch, FIVE, remaining)()
        trace = traceback.extract_tb(caught.value.__traceback__)
        assert [each.name for each in trace[1:]] == ["call_with_timeout", "fetch"]


async def wait(length, sleep):
    await sleep(length)
    return length


class TestWithTimeout:
    def test_ends_each_call_at_its_timeout(self):
        async def main():
            times = iter([5, 3])
            fetch = with_timeout(wait, lambda: next(times))
            assert await fetch(4, trio.sleep) == 4
            with pytest.raises(AttemptTimeout) as caught:
                await fetch(4, sleep=trio.sleep)
            return caught.value.timeout, trio.current_time()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == (3.0, pytest.approx(7.0))

    def test_returns_a_coroutine_function(self):
        assert inspect.iscoroutinefunction(with_timeout(wait, remaining))

    def test_its_traceback_leads_to_the_interrupted_line(self):
        async def main():
            with pytest.raises(AttemptTimeout) as caught:
                await with_timeout(wait, lambda: 0)(1, asyncio.sleep)
            return caught.value

        trace = traceback.extract_tb(asyncio.run(main()).__traceback__)
        names = [each.name for each in trace]
        assert names[:5] == [
            "main",
            "call_with_timeout",
            "__exit__",
            "call_with_timeout",
            "wait",
        ]
