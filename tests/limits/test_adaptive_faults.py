"""Faults of the adaptive mode of other SDKs, and how this one behaves.

Each name says what must happen; the docstring, what was seen instead.
"""

import asyncio
import math

import pytest

from retrykit import retry
from retrykit.limits import AdaptiveRateLimit, Refusal
from retrykit.testing import virtual_time


class SlowDownError(Exception):
    """The service throttles."""


@pytest.fixture(autouse=True)
def clock():
    with virtual_time() as clock:
        yield clock


def throttled(**settings):
    """Return a limit that has been throttled once, and fills in a token in 2 s."""
    limit = AdaptiveRateLimit(on=SlowDownError, **settings)
    limit.acquire().failed(SlowDownError())
    return limit


def test_a_refused_call_takes_no_token(clock):
    """smithy-rs #4632: each refusal took one, and the 50th call slept for 100 s."""
    limit = throttled(max_wait="1s")
    clock.advance(0.1)
    refused = [limit.acquire() for _ in range(50)]
    assert {type(each) for each in refused} == {Refusal}
    assert [each.retry_in for each in refused] == pytest.approx([0.9] * 50)
    assert limit.metrics.tokens == pytest.approx(0.05)
    clock.advance(refused[0].retry_in)
    lease = limit.acquire()
    assert lease.wait() is None
    assert clock.now() == pytest.approx(2)
    # The token of the next call is a full wait later.
    assert limit.acquire().retry_in == pytest.approx(1)


def test_a_call_that_gives_up_waiting_takes_no_token():
    """The same, where a call has a deadline."""
    limit = throttled()
    for _ in range(50):
        assert isinstance(limit.acquire().wait(at_most=1), Refusal)
    assert limit.metrics.tokens == 0


@pytest.mark.thorough
def test_50_tasks_recover_within_10_seconds(clock):
    """smithy-rs #4632: their delays were those of the rate at the throttling."""
    limit, ended = AdaptiveRateLimit(on=SlowDownError), []

    async def call(number):
        lease = limit.acquire()
        await asyncio.sleep(0)
        lease.failed(SlowDownError(number))
        while True:
            async with limit.guard():
                ended.append(clock.now())
                await clock.asleep("10ms")

    async def main():
        tasks = [asyncio.create_task(call(number)) for number in range(50)]
        await clock.asleep("10s")
        assert limit.metrics.tokens > -50
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert len(ended) > 100
    assert limit.metrics.tokens > -1


def test_tokens_of_the_time_since_are_seen_by_a_look(clock):
    """smithy-rs #4596: a bucket looked empty until somebody took a token."""
    limit = throttled()
    assert limit.metrics.tokens == 0
    clock.advance(1.5)
    assert limit.metrics.tokens == 0.75
    clock.advance(1.5)
    assert limit.metrics.tokens == limit.metrics.capacity == 1


@pytest.mark.parametrize("tokens", [1 - 1e-12, math.nextafter(1, 0), 1, 1 + 1e-12])
def test_a_shortfall_that_is_too_short_for_a_clock_is_granted(clock, tokens):
    """smithy-rs #4749: the delay was 0 ns, again and again."""
    limit = throttled()
    limit._state = limit._state._replace(tokens=tokens)  # noqa: SLF001  the only way
    lease = limit.acquire()
    assert lease.delay == 0
    assert lease.wait() is None
    assert clock.sleeps == []
    assert limit.metrics.tokens == pytest.approx(0, abs=1e-11)


def test_a_wait_that_a_late_clock_cannot_show_ends():
    """The same, for a computer that has run for long."""
    with virtual_time(start=1e9) as clock:
        limit = throttled()
        leases = [limit.acquire() for _ in range(3)]
        for lease in leases:
            assert lease.wait() is None
        assert clock.now() == pytest.approx(1e9 + 6, abs=1e-6)
        assert len(clock.sleeps) < 20


def test_a_refusal_ends_when_it_says(clock):
    """The same, for a call that is refused: it must not be told to wait for 0 ns."""
    limit, leases = throttled(max_wait=0.3), []
    for _ in range(9):
        refusal = limit.acquire()
        assert refusal.retry_in > 1e-9
        clock.advance(refusal.retry_in)
        leases.append(limit.acquire())
        assert leases[-1].wait() is None


def test_each_attempt_takes_a_token_and_only_one(clock):
    """smithy-rs #4749: retries took none, or 5 or 10 of the only one."""
    limit, sent = throttled(), []

    @retry(on=OSError, schedule=[0.1] * 3)
    @limit
    def send():
        sent.append(limit.metrics.tokens)
        if len(sent) < 4:
            raise OSError

    send()
    # Each call waited for its token, and took it.
    assert sent == pytest.approx([0] * 4, abs=1e-12)


def test_a_token_is_there_after_the_delay_of_the_server(clock):
    """smithy-rs #4749: the delay of the limit took the place of that of the server."""
    limit, sent = throttled(), []

    @retry(on=OSError, schedule=[3])
    @limit
    def send():
        sent.append(clock.now())
        if len(sent) < 2:
            raise OSError

    send()
    assert sent == [2, 5]


def test_calls_that_wait_go_one_by_one(clock):
    """botocore 1.44.8: all wait for the next token, and one of them gets it."""
    limit, went = throttled(), []

    async def call(number):
        async with limit.guard() as lease:
            went.append((number, clock.now()))
            # Keeps the rate as it is.
            lease.ignored()
            limit._state = limit._state.add(-1)  # noqa: SLF001  the only way

    async def main():
        await asyncio.gather(*map(call, range(5)))

    asyncio.run(main())
    assert went == [(number, 2 * number + 2) for number in range(5)]
