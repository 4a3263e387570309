# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of retrykit's public API; checked by mypy and pyright, never run.

A line that both must reject has a comment for each, which is an error if nothing
is reported. For pyright this needs ``enableTypeIgnoreComments = false``.
"""

import asyncio
import functools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
)
from datetime import timedelta
from typing import (
    Any,
    Generic,
    NoReturn,
    Self,
    TypeVar,
    assert_never,
    assert_type,
    overload,
)

from retrykit import (
    Outcome,
    Policy,
    RetryState,
    WithError,
    WithValue,
    aretry,
    chain,
    policy_of,
    resume,
    retry,
    retrying,
    schedules as s,
    streams,
    with_policy,
)
from retrykit.events import RetryScheduled
from retrykit.streams import AsyncStream, Stream

T = TypeVar("T")
POLICY = Policy(schedule=s.exponential(1).cap("1m"), on=(OSError, ValueError))
STATE = RetryState("fetch", seed=7, epoch=0.0)


@retry
def bare(url: str, *, timeout: float = 1.0) -> bytes:
    return url.encode() * int(timeout)


@retry()
def called(url: str) -> bytes:
    return url.encode()


@retry(POLICY)
def under_a_policy(url: str) -> bytes:
    return url.encode()


@retry(policy=POLICY, max_attempts=None)
def under_a_changed_policy(url: str) -> bytes:
    return url.encode()


@retry(on=ConnectionError, max_attempts=4, max_elapsed=timedelta(minutes=1))
def with_settings(url: str) -> bytes:
    return url.encode()


@retry
async def bare_async(url: str) -> bytes:
    return url.encode()


@aretry
async def bare_aretry(url: str) -> bytes:
    return url.encode()


@aretry(POLICY, max_attempts=3)
async def aretry_under_a_policy(url: str) -> bytes:
    return url.encode()


@aretry(schedule=["1s", 2, timedelta(seconds=3)])
def task(url: str) -> "asyncio.Task[bytes]":
    return asyncio.create_task(bare_async(url))


def functions_keep_their_types() -> None:
    assert_type(bare("here", timeout=2), bytes)
    assert_type(called("here"), bytes)
    assert_type(under_a_policy("here"), bytes)
    assert_type(under_a_changed_policy("here"), bytes)
    assert_type(with_settings("here"), bytes)
    bare(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    bare("here", 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    called()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    under_a_policy(url=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with_settings("", tries=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    _: int = bare("here")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


async def coroutine_functions_keep_their_types() -> None:
    assert_type(await bare_async("here"), bytes)
    assert_type(await bare_aretry("here"), bytes)
    assert_type(await aretry_under_a_policy("here"), bytes)
    assert_type(await task("here"), bytes)
    assert_type(task("here"), asyncio.Task[bytes])
    bare_async("here")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    await bare_async(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await bare_aretry()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await bare("here")  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]


class Client:
    def __init__(self, host: str = "localhost") -> None:
        self.host = host

    @retry
    def get(self, key: str) -> int:
        return len(key)

    @retry(POLICY)
    async def aget(self, key: str) -> int:
        return len(key)

    @retry
    @classmethod
    def made(cls, key: str) -> Self:
        return cls(key)

    @classmethod
    @retry(POLICY)
    def also_made(cls, key: str) -> Self:
        return cls(key)

    @retry
    @classmethod
    async def amade(cls, key: str) -> Self:
        return cls(key)

    @retry
    @staticmethod
    def given(key: str) -> int:
        return len(key)

    @staticmethod
    @retry(POLICY)
    def also_given(key: str) -> int:
        return len(key)

    @staticmethod
    @aretry
    async def agiven(key: str) -> int:
        return len(key)

    @property
    @retry
    def size(self) -> int:
        return 1

    @functools.cached_property
    @retry
    def cached(self) -> str:
        return "cached"

    @retry
    def __call__(self, key: str) -> int:
        return len(key)

    quick = with_policy(get, max_attempts=2)


class Special(Client):
    @retry
    def get(self, key: str) -> int:
        return super().get(key)


class Wrong(Client):
    @retry
    def get(self, key: int) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return key


async def methods_keep_their_types(client: Client, special: Special) -> None:
    assert_type(client.get("a"), int)
    assert_type(Client.get(client, "a"), int)
    assert_type(await client.aget("a"), int)
    assert_type(special.get("a"), int)
    assert_type(client.size, int)
    assert_type(client.cached, str)
    assert_type(client("a"), int)
    assert_type(client.quick("a"), int)
    client.get()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.get(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.get(client, "a")  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    await client.aget(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def class_and_static_methods_keep_their_types(special: Special) -> None:
    assert_type(Client.made("a"), Client)
    assert_type(Special.made("a"), Special)
    assert_type(special.made("a"), Special)
    assert_type(Special.also_made("a"), Special)
    assert_type(await Special.amade("a"), Special)
    assert_type(Client.given("a"), int)
    assert_type(special.given("a"), int)
    assert_type(special.also_given("a"), int)
    assert_type(await special.agiven("a"), int)
    Client.made(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Client.also_made()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Client.given(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    special.also_given("a", 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


class Base(ABC):
    @retry
    @abstractmethod
    def above(self) -> int: ...

    @abstractmethod
    @retry
    def below(self) -> int: ...


def abstract_methods_are_abstract() -> None:
    Base()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


@retry
def first(items: list[T]) -> T:
    return items[0]


class Box(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value

    @retry
    def get(self) -> T:
        return self.value


@overload
def parsed(text: str) -> int: ...
@overload
def parsed(text: bytes) -> float: ...
@retry
def parsed(text: str | bytes) -> float:
    return float(text)


def generics_and_overloads_are_kept() -> None:
    assert_type(first([1, 2]), int)
    assert_type(first(["a"]), str)
    assert_type(Box(1).get(), int)
    assert_type(Box("a").get(), str)
    assert_type(parsed("1"), int)
    assert_type(parsed(b"1"), float)
    first(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    parsed(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def other_callables_are_kept(client: Client) -> None:
    assert_type(retry(functools.partial(bare, "here"))(), bytes)
    assert_type(retry(POLICY)(functools.partial(bare, "here")).args, tuple[Any, ...])
    assert_type(retry(client), Client)
    assert_type(retry(client.get)("a"), int)
    assert_type(retry(len)("a"), int)
    pointless: Callable[[int], int] = retry(lambda number: number)
    assert_type(pointless(5), int)
    retry(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    retry([1])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    retry(bare, POLICY)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


def the_same_function_under_another_policy(client: Client) -> None:
    assert_type(with_policy(bare, POLICY)("here", timeout=2), bytes)
    assert_type(with_policy(client.get, max_attempts=2)("a"), int)
    assert_type(with_policy(client, POLICY, name="client"), Client)
    assert_type(policy_of(bare), Policy)
    assert_type(resume(client.get, STATE)("a"), int)
    assert_type(resume(bare, STATE, POLICY, max_attempts=9)("here"), bytes)
    with_policy(bare, POLICY)(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with_policy(bare, tries=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    resume(bare)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    resume(bare, POLICY)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def calls_without_decorating(client: Client) -> None:
    assert_type(POLICY.call(bare, "here", timeout=2), bytes)
    assert_type(POLICY.call(client.get, "a"), int)
    assert_type(await POLICY.acall(bare_async, "here"), bytes)
    assert_type(await POLICY.acall(task, "here"), bytes)
    assert_type(POLICY.run(bare, "here"), Outcome[bytes])
    assert_type(await POLICY.arun(client.aget, "a"), Outcome[int])
    POLICY.call(bare, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    POLICY.call(bare)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    POLICY.run(bare, "here", 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await POLICY.acall(bare, "here")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await POLICY.arun(bare_async, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def an_outcome_has_a_value_or_an_error(outcome: Outcome[bytes]) -> None:
    assert_type(outcome.value, bytes | None)
    assert_type(outcome.error, Exception | None)
    assert_type(outcome.state, RetryState)
    assert_type(outcome.ok, bool)
    assert_type(outcome.unwrap(), bytes)
    assert_type(outcome.value_or(None), bytes | None)
    assert_type(outcome.value_or(b""), bytes)
    _: Outcome[bytes | int] = outcome
    outcome.value = b""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def ok_tells_which(outcome: Outcome[bytes], other: Outcome[bytes]) -> None:
    if outcome.ok is True:
        assert_type(outcome.value, bytes)
        assert_type(outcome.error, None)
    else:
        assert_type(outcome.value, None)
        assert_type(outcome.error, Exception)
    if other.ok:
        # Pyright narrows a union by `is`, but not by truth.
        assert_type(other.value, bytes)  # pyright: ignore[reportAssertTypeFailure]
    else:
        assert_type(other.error, Exception)  # pyright: ignore[reportAssertTypeFailure]


def the_error_tells_which(outcome: Outcome[bytes], other: Outcome[bytes]) -> None:
    if outcome.error is None:
        assert_type(outcome.value, bytes)
    else:
        assert_type(outcome.error, Exception)
    if other.error is not None:
        raise other.error
    assert_type(other.value, bytes)


def the_type_tells_which(outcome: Outcome[bytes]) -> bytes:
    match outcome:
        case WithValue():
            assert_type(outcome.value, bytes)
            return outcome.value
        case WithError():
            raise outcome.error
        case never:
            assert_never(never)


def unwrap_returns_or_raises(error: WithError, value: WithValue[int]) -> NoReturn:
    assert_type(value.unwrap(), int)
    assert_type(value.value_or("none"), int)
    assert_type(error.value_or("none"), str)
    error.unwrap()


def current_policy() -> Policy:
    return POLICY


@retry(policy=current_policy, max_attempts=2)
def under_the_policy_of_the_moment(url: str) -> bytes:
    return url.encode()


def a_policy_may_be_a_function() -> None:
    assert_type(under_the_policy_of_the_moment("here"), bytes)
    assert_type(with_policy(bare, current_policy)("here"), bytes)
    retrying(current_policy)
    retry(policy=bare)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    retry(policy=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def warn(event: RetryScheduled) -> None:
    assert_type(event.delay, float)


def the_end_and_the_wait_have_settings() -> None:
    Policy(stop_event=threading.Event(), sleep=time.sleep, fallback=None)
    Policy(stop_event=asyncio.Event(), sleep=asyncio.sleep, limits="all")
    Policy(observers={"gave_up": print, "retry_scheduled": warn})
    Policy(fallback=lambda state: state.failures)
    Policy(stop_event=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(sleep=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(limits="both")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(observers={"retried": print})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Policy(observers={"gave_up": warn})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


async def is_busy(error: Exception) -> bool:
    return bool(error.args)


def awaitable_predicates_are_conditions() -> None:
    Policy(on=is_busy, on_result=lambda result: result is None)
    accepted: Callable[[Exception], Awaitable[bool]] = is_busy
    aretry(on=accepted)


async def stale(state: RetryState) -> str:
    return state.name


def computed(state: RetryState) -> str:
    return state.name


@retry(fallback=None)
def or_none(url: str) -> int:
    return len(url)


@retry(POLICY, fallback=computed, max_attempts=3)
def or_a_computed_value(url: str) -> int:
    return len(url)


@retry(policy=current_policy, fallback=None)
async def or_none_async(url: str) -> int:
    return len(url)


@aretry(fallback=stale)
async def or_an_awaited_value(url: str) -> int:
    return len(url)


class Cached:
    @retry(fallback=None)
    def get(self, key: str) -> int:
        return len(key)

    @retry(fallback=None)
    async def aget(self, key: str) -> int:
        return len(key)

    @retry(fallback=None)
    @classmethod
    def made(cls, key: str) -> int:
        return len(key)

    @retry(fallback=None)
    @classmethod
    async def amade(cls, key: str) -> int:
        return len(key)

    @staticmethod
    @retry(fallback=None)
    def given(key: str) -> int:
        return len(key)

    @retry(fallback=None)
    @staticmethod
    async def agiven(key: str) -> int:
        return len(key)


def the_type_includes_the_fallback(cached: Cached) -> None:
    assert_type(or_none("here"), int | None)
    assert_type(or_a_computed_value("here"), int | str)
    assert_type(cached.get("a"), int | None)
    assert_type(Cached.get(cached, "a"), int | None)
    assert_type(Cached.made("a"), int | None)
    assert_type(Cached.given("a"), int | None)
    assert_type(retry(fallback=None)(functools.partial(bare, "here"))(), bytes | None)
    or_none(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _ = or_none("here") + 1  # type: ignore[operator]  # pyright: ignore[reportOptionalOperand]
    retry(fallback=None, tries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def awaited_types_include_the_fallback(cached: Cached) -> None:
    assert_type(await or_none_async("here"), int | None)
    assert_type(await cached.aget("a"), int | None)
    assert_type(await Cached.amade("a"), int | None)
    assert_type(await cached.agiven("a"), int | None)
    assert_type(await or_an_awaited_value("here"), int | str)


def a_fallback_knows_its_call(state: RetryState) -> None:
    assert_type(state.args, tuple[Any, ...])
    assert_type(state.kwargs, dict[str, Any])
    assert_type(state.function, Callable[..., Any] | None)


def wrong_settings_are_reported() -> None:
    Policy(max_attemps=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Policy(max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(deadline="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(raises="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(on="OSError")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(on=BaseException)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(schedule=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(seed=0.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(observers=print)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    POLICY.replace(tries=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    POLICY.max_attempts = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    retry(tries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    retry(max_attempts="3")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    retry(POLICY, on=int)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    aretry(tries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    aretry(POLICY, POLICY)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@retry(stream="until-first-item", max_attempts=3)
def tokens(prompt: str) -> Iterator[str]:
    yield prompt


@retry(policy=Policy(), stream=streams.restart(skip_seen=True))
def echoed(first: int) -> Generator[int, str, bytes]:
    yield len((yield first))
    return b""


@aretry(stream=streams.resume(lambda last, _state: {"start": last}))
async def pages(start: int) -> AsyncGenerator[int, None]:
    yield start


@retry(Policy(), stream="restart")
async def lines(path: str) -> AsyncIterator[str]:
    yield path


def check_streams() -> None:
    assert_type(tokens("why"), Stream[str, None, None])
    assert_type([*tokens("why")], list[str])
    assert_type(echoed(3), Stream[int, str, bytes])
    assert_type(echoed(3).send("a"), int)
    assert_type(tokens("why").state, RetryState)
    with tokens("why") as stream:
        assert_type(next(stream), str)
    tokens(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def check_async_streams() -> None:
    assert_type(pages(3), AsyncStream[int, None])
    assert_type([each async for each in lines("a")], list[str])
    async with lines("a") as stream:
        assert_type(await anext(stream), str)


def first_provider(city: str, *, unit: str = "C") -> int:
    return len(city + unit)


def second_provider(city: str, *, unit: str = "C") -> int:
    return 0


async def async_provider(city: str) -> int:
    return 0


def check_chains() -> None:
    assert_type(chain(first_provider, second_provider)("Oslo", unit="F"), int)
    with_default = chain(first_provider, second_provider, default=None)
    assert_type(with_default("Oslo"), int | None)
    chain(first_provider, second_provider)(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def check_async_chains() -> None:
    assert_type(await chain(async_provider, async_provider)("Oslo"), int)
    with_default = chain(async_provider, async_provider, default="cached")
    assert_type(await with_default("Oslo"), int | str)


@retry(policy=lambda tenant: Policy(max_attempts=len(tenant)))
def of_tenant(tenant: str) -> int:
    return 0


def check_policies_of_calls() -> None:
    assert_type(of_tenant("large"), int)
