# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of blocks, states, decisions and schedules; checked, never run."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, assert_never, assert_type

from retrykit import (
    Again,
    Decision,
    Failure,
    GiveUp,
    Policy,
    RetryAfter,
    RetryError,
    RetryState,
    Stop,
    StopReason,
    aretrying,
    current_state,
    observe,
    presets,
    retrying,
    schedules as s,
    state_of,
)
from retrykit._core.blocks import Attempt
from retrykit._core.failures import ErrorRecord
from retrykit.backoff import STOP, Backoff
from retrykit.events import (
    AttemptFailed,
    AttemptStarted,
    Event,
    GaveUp,
    HedgeStarted,
    RetryScheduled,
    Succeeded,
    Suspended,
)
from retrykit.integrations.logging import observer
from retrykit.schedules._base import Schedule
from retrykit.testing import (
    AsyncScriptedFunction,
    FakeClock,
    Recording,
    ScriptedFunction,
    disable_retries,
    limit_retries,
    record,
    virtual_time,
)

POLICY = Policy()


async def blocks(state: RetryState) -> None:
    for attempt in retrying(POLICY):
        with attempt:
            assert_type(attempt, Attempt)
            assert_type(attempt.number, int)
            assert_type(attempt.state, RetryState)
            attempt.set_result(5)
    async for attempt in aretrying(state=state):
        with attempt as entered:
            assert_type(entered, Attempt)
    for attempt in aretrying():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
        attempt.set_result(5)
    for attempt in retrying(max_attempts=3, on=OSError):
        assert_type(attempt, Attempt)
    retrying(max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    retrying(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def states(error: Exception) -> None:
    state = state_of(error)
    assert_type(state, RetryState | None)
    _ = state.attempt  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    state = current_state()
    assert_type(state, RetryState)
    assert_type(state.failures, tuple[Failure, ...])
    assert_type(state.errors, tuple[Exception | ErrorRecord, ...])
    assert_type(state.status, Literal["running", "succeeded", "dead"])
    assert_type(state.stop_reason, StopReason | None)
    assert_type(state.started_at, datetime)
    assert_type(state.elapsed, float)
    assert_type(state.remaining, float | None)
    assert_type(state.next_delay, float | None)
    assert_type(state.total_delay, float)
    assert_type(state.to_dict(), dict[str, Any])
    assert_type(RetryState.from_dict({}), RetryState)
    assert_type(RetryError(state).state, RetryState)
    _ = state.attempts  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def decisions(state: RetryState, failure: Failure) -> float:
    decision = POLICY.decide(state, failure)
    assert_type(decision, Decision)
    match decision:
        case Again(delay):
            assert_type(delay, float)
            return delay
        case Stop(reason):
            assert_type(reason, StopReason)
            return 0.0
        case never:
            assert_never(never)


def signals(error: ValueError) -> None:
    assert_type(RetryAfter("2s", error).delay, float | None)
    assert_type(GiveUp(error).cause, Exception | None)
    RetryAfter()
    RetryAfter([])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    GiveUp("busy")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    GiveUp(KeyboardInterrupt())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def watch(event: Event) -> None:
    assert_type(event.state, RetryState)
    match event:
        case AttemptStarted() | Suspended() | Succeeded() | GaveUp():
            pass
        case HedgeStarted():
            assert_type(event.number, int)
        case AttemptFailed():
            assert_type(event.failure, Failure)
        case RetryScheduled():
            assert_type(event.delay, float)
        case HedgeStarted():
            assert_type(event.number, int)
        case never:
            assert_never(never)


def observers() -> None:
    with observe(watch):
        Policy(observers=[watch, observer()])
    observe(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def delays() -> Iterator[float]:
    yield 1.0


def schedules() -> None:
    assert_type(s.constant("5s") + s.polynomial(4) * 2, Schedule)
    assert_type(sum([s.constant("5s"), s.linear(1)]), Schedule | Literal[0])
    assert_type(s.exponential(1).cap(60).jitter(0.5) | s.linear(1).take(3), Schedule)
    assert_type(s.fibonacci(1).take(3).then([1, "2s"]) & s.sequence([1]), Schedule)
    assert_type(s.sequence([1, "2s"], repeat_last=True), Schedule)
    assert_type(s.constant(1).switch(after=3, to=delays), Schedule)
    assert_type(s.linear(1).bounds(3), tuple[float, float] | None)
    Policy(schedule=delays)
    Policy(schedule=[1, 2.5, "3s"])
    s.linear(1).cap([])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    s.exponential(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def the_rest() -> None:
    assert_type(presets.google(multiplier=2), Policy)
    assert_type(presets.zizq(retry_limit=3, base="1m"), Policy)
    assert_type(presets.hostname_verification().replace(name="host"), Policy)
    assert_type(Policy.from_dict({}), Policy)
    assert_type(POLICY.to_dict(), dict[str, Any])
    assert_type(Policy.from_toml("pyproject.toml", "fetch"), Policy)
    assert_type(Policy.from_toml(Path("policies.json"), "fetch"), Policy)
    assert_type(Policy.from_env("APP_RETRY"), Policy)
    assert_type(Policy.from_env("APP", base=POLICY, environ={"APP_SEED": "7"}), Policy)
    Policy.from_toml("pyproject.toml")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Policy.from_toml(5, "fetch")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy.from_env("APP", POLICY)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Policy.from_env("APP", environ={"APP_SEED": 7})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    presets.zizq(limit=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    presets.zizq(base=[])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(POLICY.max_elapsed, float | None)
    assert_type(POLICY.schedule, Schedule)
    backoff = Backoff(POLICY)
    delay = backoff.next()
    if delay is not STOP:
        assert_type(delay, float)
    with virtual_time() as clock:
        assert_type(clock, FakeClock)
        assert_type(clock.sleeps, list[float])
        clock.advance("1h")
    with virtual_time(
        100, process_wide=True, stall_timeout="1s", allow_real_sleep=True
    ):
        pass
    virtual_time(process_wide=True, speed=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with record() as recorded, disable_retries(), limit_retries(3):
        assert_type(recorded, Recording)
        assert_type(recorded.calls, list[RetryState])
    assert_type(ScriptedFunction([OSError, "ok"]).times, list[float])
    AsyncScriptedFunction("ok", name=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
