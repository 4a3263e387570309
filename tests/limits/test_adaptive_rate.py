"""Adaptive rate limits: what counts as throttling, waiting, settings."""

import asyncio
import copy
import gc
import json
import logging
import math
import pickle
from types import SimpleNamespace

import looptime
import pytest

from retrykit import RefusedError, RetryAfter, aretry, retry
from retrykit._internal.clocks import sync_clock
from retrykit._internal.locks import renew_locks
from retrykit.conditions import HttpFailures
from retrykit.limits import (
    AdaptiveRateLimit,
    CircuitBreaker,
    Refusal,
    Registry,
    limit_from_dict,
    shared,
    states,
)
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread
from tests._support.optional_trio import trio


class SlowDownError(Exception):
    """The service throttles."""


class Interrupt(BaseException):
    """An interrupt of a sleep."""


def is_slow_down(error):
    """Return whether the message says so."""
    return "slow down" in str(error)


class StandingClock:
    """A clock that stands still, and whose sleep is interrupted."""

    def now(self):
        return 10.0

    def sleep(self, _):
        raise Interrupt


class ClientError(Exception):
    """An error as botocore makes it."""

    def __init__(self, code, status=400):
        super().__init__(code)
        metadata = {"HTTPStatusCode": status}
        self.response = {"Error": {"Code": code}, "ResponseMetadata": metadata}


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


def throttled(**settings):
    """Return a limit that has been throttled once, and fills in a token in 2 s."""
    limit = AdaptiveRateLimit(on=SlowDownError, **settings)
    limit.acquire().failed(SlowDownError())
    assert limit.metrics.fill_rate == 0.5
    return limit


def succeed(limit, times=1):
    """Report calls that were made before it limited."""
    for _ in range(times):
        lease = AdaptiveRateLimit().acquire()
        lease.limit = limit
        lease.succeeded()


class TestFailures:
    """Which calls were throttled, and which were not made."""

    @pytest.mark.parametrize(
        ("settings", "error", "expected"),
        [
            ({}, ClientError("ThrottlingException"), True),
            ({}, ClientError("Unknown", 429), True),
            ({}, ClientError("AccessDenied"), False),
            ({}, ConnectionError(), False),
            ({"on": SlowDownError}, SlowDownError(), True),
            ({"on": (KeyError, SlowDownError)}, SlowDownError(), True),
            ({"on": is_slow_down}, OSError("slow down"), True),
            ({"on": is_slow_down}, OSError("refused"), False),
            ({"on": SlowDownError}, RetryAfter(5, cause=SlowDownError()), True),
            ({}, None, False),
            ({"on_result": bool}, None, True),
        ],
        ids=[
            "a code of AWS",
            "a status of AWS",
            "another code",
            "no response",
            "a type",
            "one of several",
            "a predicate",
            "another error",
            "a signal",
            "a rejected result",
            "a throttled result",
        ],
    )
    def test_only_throttling_turns_it_on(self, settings, error, expected):
        limit = AdaptiveRateLimit(**settings)
        limit.acquire().failed(error)
        assert limit.state == ("limiting" if expected else "off")
        assert limit.metrics[-4:] == (int(expected), int(not expected), 0, 0)

    @pytest.mark.usefixtures("clock")
    def test_another_failure_counts_as_a_success_does(self, clock):
        limits = [throttled(), throttled()]
        for _ in range(20):
            clock.advance(0.25)
            limits[0].acquire().succeeded()
            limits[1].acquire().failed(OSError())
        assert limits[0].metrics == limits[1].metrics
        assert limits[0].metrics.fill_rate > 0.5

    @pytest.mark.parametrize("form", ["decorator", "block"])
    @pytest.mark.parametrize(
        ("error", "counted"),
        [(SlowDownError, (1, 0, 0)), (OSError, (0, 1, 0)), (TypeError, (0, 0, 1))],
        ids=["throttled", "another error", "a mistake"],
    )
    def test_what_a_call_raises_is_reported(self, form, error, counted):
        limit = AdaptiveRateLimit(on=SlowDownError)

        def call():
            raise error

        with pytest.raises(error):
            if form == "decorator":
                limit(call)()
            else:
                with limit.guard():
                    call()
        assert limit.metrics[-4:-1] == counted

    def test_a_mistake_that_is_named_is_throttling(self):
        limit = AdaptiveRateLimit(on=NotImplementedError)
        with pytest.raises(NotImplementedError), limit.guard():
            raise NotImplementedError
        assert limit.state == "limiting"

    def test_a_refusal_of_another_limit_is_ignored(self):
        limit, breaker = AdaptiveRateLimit(), CircuitBreaker()
        breaker.isolate()
        with pytest.raises(RefusedError), limit.guard(), breaker.guard():
            pass
        assert limit.metrics.total_ignored == 1

    def test_results_may_be_throttling(self):
        limit = AdaptiveRateLimit(on_result=lambda status: status == 429)
        assert limit(lambda: 200)() == 200
        assert limit.metrics.total_others == 1
        assert limit(lambda: 429)() == 429
        assert limit.state == "limiting"
        assert AdaptiveRateLimit().is_failed_result(429) is None

    def test_a_condition_of_other_clients_fits(self):
        busy = HttpFailures([429])
        limit = AdaptiveRateLimit(on=busy, on_result=busy)

        def fetch(status):
            return SimpleNamespace(status_code=status)

        limit(fetch)(503)
        assert limit.state == "off"
        limit(fetch)(429)
        assert limit.state == "limiting"

    def test_a_condition_that_fails_is_logged(self, caplog):
        limit = AdaptiveRateLimit(on=lambda _: 1 / 0)
        with caplog.at_level(logging.ERROR):
            limit.acquire().failed(OSError())
        assert "because the condition of its limit failed" in caplog.text
        assert limit.metrics[-4:] == (0, 1, 0, 0)

    def test_the_first_report_counts(self):
        limit = AdaptiveRateLimit(on=SlowDownError)
        lease = limit.acquire()
        lease.succeeded()
        lease.failed(SlowDownError())
        lease.ignored()
        lease.succeeded()
        assert limit.metrics[-4:] == (0, 1, 0, 0)
        assert lease.wait() is None

    def test_a_report_of_before_counts(self):
        limit = AdaptiveRateLimit(on=SlowDownError)
        early = limit.acquire()
        limit.acquire().failed(SlowDownError())
        early.failed(SlowDownError())
        assert (early.generation, limit.metrics.total_throttled) == (0, 2)


@pytest.mark.usefixtures("clock")
class TestTokens:
    def test_while_it_is_off_none_is_needed(self, clock):
        limit = AdaptiveRateLimit()
        leases = [limit.acquire() for _ in range(1000)]
        assert {lease.delay for lease in leases} == {0}
        assert limit.metrics.expected_wait == 0
        leases[0].ignored()
        assert limit.metrics.tokens == 0
        assert leases[1].wait() is None
        assert clock.sleeps == []

    def test_one_that_is_ignored_is_given_back(self, clock):
        limit = throttled()
        clock.advance("1m")
        lease = limit.acquire()
        assert limit.metrics.tokens == 0
        lease.ignored()
        assert limit.metrics.tokens == 1
        clock.advance("1m")
        limit.acquire().ignored()
        assert limit.metrics.tokens == limit.metrics.capacity == 1

    def test_one_that_is_dropped_is_given_back(self):
        limit = throttled()
        lease = limit.acquire()
        assert limit.metrics.tokens == -1
        del lease
        gc.collect(0)
        assert limit.metrics.tokens == 0

    def test_a_short_wait_is_known_in_advance(self, clock):
        limit = throttled()
        clock.advance(1.5)
        lease = limit.acquire()
        assert lease.delay == 0.5
        assert repr(lease) == "<lease of an adaptive rate limit, due in 0.5 s>"
        assert limit.acquire().delay == math.inf

    def test_waiting_calls_move_up_when_one_gives_up(self, clock):
        limit = throttled()
        first, *others, last = [limit.acquire() for _ in range(50)]
        assert limit.time_left(last) == 100
        for lease in others:
            lease.ignored()
        assert limit.time_left(first) == 2
        assert last.wait() is None
        assert clock.now() == 4

    def test_a_call_waits_less_when_the_rate_rises(self, clock):
        limit = throttled()
        leases = [limit.acquire() for _ in range(10)]
        for _ in range(8):
            clock.advance(0.5)
            succeed(limit, times=20)
        assert limit.metrics.fill_rate > 10
        assert leases[-1].wait() is None
        # At the rate of the start, it would be 20.
        assert clock.now() < 5

    def test_a_call_waits_longer_when_the_rate_falls(self, clock):
        limit = AdaptiveRateLimit(on=SlowDownError)
        for _ in range(20):
            clock.advance(0.1)
            limit.acquire().succeeded()
        early = limit.acquire()
        limit.acquire().failed(SlowDownError())
        held = [limit.acquire() for _ in range(8)]
        left = limit.time_left(held[-1])
        early.failed(SlowDownError())
        assert limit.time_left(held[-1]) == pytest.approx(left / 0.7)

    def test_a_clock_that_is_replaced_by_an_earlier_one_goes_on(self, clock):
        clock.advance("1h")
        limit = throttled()
        with virtual_time() as earlier:
            assert limit.metrics.tokens == 0
            earlier.advance(1)
            assert limit.metrics.tokens == 0.5
            lease = limit.acquire()
            assert lease.wait() is None
            assert earlier.now() == 2
            limit.acquire().succeeded()
            for _ in range(40):
                earlier.advance(0.1)
                limit.acquire().succeeded()
            assert limit.metrics.measured_rate == pytest.approx(10, rel=0.05)
            assert limit.metrics.fill_rate > 1

    def test_a_clock_that_goes_back_a_little_ends_no_measuring(self, clock):
        limits = [AdaptiveRateLimit(), AdaptiveRateLimit()]
        for limit in limits:
            for _ in range(5):
                succeed(limit)
        clock.advance(0.875)
        limits[0].metrics, limits[1].metrics
        with virtual_time(start=0.75) as earlier:
            succeed(limits[1])
            earlier.advance(0.125)
        succeed(limits[0])
        assert limits[0].metrics.measured_rate == limits[1].metrics.measured_rate > 0

    def test_a_rate_is_measured_from_a_whole_second(self):
        """As in botocore: then the first one is too low, not too high."""
        with virtual_time(start=7.875) as clock:
            limit = AdaptiveRateLimit()
            succeed(limit)
            assert limit.metrics.measured_rate == 0.8 / 0.5
            clock.advance(0.125)
            succeed(limit)
            assert limit.metrics.measured_rate == pytest.approx(1.92)


class TestWaiting:
    @pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])
    def test_decorated_functions_wait(self, clock, kind):
        limit = throttled()
        if kind == "sync":
            assert limit(clock.now)() == 2
        else:

            async def call():
                return clock.now()

            run = asyncio.run if kind == "asyncio" else trio.run
            call = limit(call)
            assert run(call() if kind == "asyncio" else call) == 2
        assert sum(clock.sleeps) == 2

    def test_a_limit_below_retry_delays_retries_too(self, clock):
        limit = throttled()

        @retry(on=SlowDownError, schedule=[0], max_attempts=2)
        @limit
        def fetch():
            raise SlowDownError

        with pytest.raises(SlowDownError):
            fetch()
        assert clock.now() == 4

    def test_a_coroutine_below_aretry_waits(self, clock):
        limit = throttled()

        @aretry(on=SlowDownError, schedule=[0], max_attempts=2)
        @limit
        async def fetch():
            raise SlowDownError

        with pytest.raises(SlowDownError):
            asyncio.run(fetch())
        assert clock.now() == 4

    @pytest.mark.usefixtures("clock")
    def test_a_call_that_would_wait_too_long_is_refused(self):
        limit = throttled(max_wait="1.5s", name="dynamodb")
        text = "limit 'dynamodb' is throttled, and its next token comes after max_wait;"
        with pytest.raises(RefusedError, match=f"^{text} try again in 500 ms$"):
            limit(lambda: 1)()
        assert limit.metrics.total_refused == 1
        assert throttled(max_wait=0).acquire().retry_in == 2

    def test_the_longest_wait_is_allowed(self, clock):
        limit = throttled(max_wait=2)
        assert limit(clock.now)() == 2

    @pytest.mark.parametrize("kind", ["sync", "async"])
    @pytest.mark.parametrize("setting", ["max_wait", "at_most"])
    def test_a_call_is_refused_when_its_wait_becomes_too_long(
        self, clock, kind, setting
    ):
        limit = throttled(max_wait=2 if setting == "max_wait" else None)
        early = AdaptiveRateLimit().acquire()
        early.limit = limit
        for _ in range(8):
            clock.advance(0.5)
            succeed(limit)
        clock.advance(0.25)
        rate = limit.metrics.fill_rate
        assert rate > 1
        leases = [limit.acquire()]
        while limit.metrics.expected_wait <= 2:
            leases.append(limit.acquire())
        lease = leases[-1]
        early.failed(SlowDownError())
        assert limit.metrics.fill_rate < rate
        at_most = 2 if setting == "at_most" else None
        tokens = limit.metrics.tokens
        if kind == "sync":
            refusal = lease.wait(at_most)
        else:
            refusal = asyncio.run(lease.wait_async(at_most))
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "throttled for longer than the call may wait"
        assert refusal.retry_in > 2
        assert limit.metrics.tokens == tokens + 1

    def test_an_interrupted_wait_gives_its_token_back(self):
        with sync_clock.use(StandingClock()):
            limit = throttled()
            with pytest.raises(Interrupt):
                limit(lambda: 1)()
            assert limit.metrics.tokens == 0

    @pytest.mark.usefixtures("clock")
    def test_a_cancelled_wait_gives_its_token_back(self):
        async def main(limit):
            task = asyncio.create_task(limit.acquire().wait_async())
            await asyncio.sleep(0)
            assert limit.metrics.tokens == -1
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        limit = throttled()
        asyncio.run(main(limit))
        assert limit.metrics.tokens == 0

    def test_a_loop_with_a_clock_of_its_own_waits_by_that(self):
        async def main(limit):
            loop = asyncio.get_running_loop()
            before = loop.time()
            async with limit.guard():
                return loop.time() - before

        with (
            sync_clock.use(StandingClock()),
            asyncio.Runner(loop_factory=looptime.new_event_loop) as runner,
        ):
            assert runner.run(main(throttled())) == pytest.approx(2)


class TestChangesWithinAChange:
    """A finalizer or a signal handler uses the limit while its lock is held."""

    @pytest.fixture
    def during(self):
        """Return a list of functions that the next looks at a clock call."""

        calls = []

        class Clock:
            sleep = None

            def now(self):
                if calls:
                    calls.pop()()
                return 10.0

        with sync_clock.use(Clock()):
            yield calls
        assert not calls

    def test_no_token_is_lost(self, during):
        limit = throttled()
        held = [limit.acquire() for _ in range(4)]
        during.append(held[0].ignored)
        lease = limit.acquire()
        assert limit.metrics.tokens == -4
        during.append(held[1].ignored)
        lease.ignored()
        assert limit.metrics.tokens == -2
        during.append(held[2].ignored)
        held[3].succeeded()
        assert limit.metrics.tokens == -1
        assert limit.metrics[-4:] == (1, 1, 4, 0)

    def test_a_lease_is_reported_once(self, during):
        limit = throttled()
        first, second = limit.acquire(), limit.acquire()
        during.append(first.ignored)
        first.succeeded()
        during.append(second.succeeded)
        second.ignored()
        assert limit.metrics[-4:] == (1, 1, 1, 0)
        during.append(limit.acquire().ignored)
        assert limit.metrics.tokens == -1
        lease = limit.acquire()
        during.append(lease.ignored)
        assert limit.metrics.tokens == -1


FULL = AdaptiveRateLimit(
    on=(OSError, SlowDownError), max_wait="1m30s", name="table of orders"
)
LIMITS = {
    "defaults": AdaptiveRateLimit(),
    "a type": AdaptiveRateLimit(on=SlowDownError),
    "everything": FULL,
}


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  pickled here


@pytest.mark.usefixtures("clock")
class TestSettings:
    @pytest.fixture(params=LIMITS.values(), ids=LIMITS)
    def limit(self, request):
        return request.param

    def test_its_expression_makes_an_equal_one(self, limit):
        text = repr(limit).replace(f"{__name__}.", "")
        names = {"AdaptiveRateLimit": AdaptiveRateLimit, "SlowDownError": SlowDownError}
        assert eval(text, names).settings == limit.settings  # noqa: S307

    def test_data_and_back(self, limit):
        data = json.loads(json.dumps(limit.to_dict()))
        assert limit_from_dict(data).settings == limit.settings
        assert limit_from_dict(data).to_dict() == data

    def test_data_of_all_settings(self):
        assert FULL.to_dict() == {
            "kind": "adaptive_rate",
            "on": ["OSError", f"{__name__}:SlowDownError"],
            "max_wait": 90.0,
            "name": "table of orders",
        }
        assert AdaptiveRateLimit().to_dict() == {"kind": "adaptive_rate"}

    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
    def test_a_copy_has_the_settings_and_is_off(self, again):
        limit = throttled(max_wait=5)
        copied = again(limit)
        assert copied is not limit
        assert copied.settings == limit.settings
        assert copied.state == "off"

    def test_predicates_are_pickled_but_not_written(self):
        limit = AdaptiveRateLimit(on=is_slow_down, on_result=is_slow_down)
        assert pickled(limit).settings == limit.settings
        text = "AdaptiveRateLimit(on=is_slow_down, on_result=is_slow_down)"
        assert repr(limit) == text

    def test_a_scope_has_one(self):
        limit = shared("key:adaptive-1", make=AdaptiveRateLimit)
        assert shared("key:adaptive-1", make=AdaptiveRateLimit) is limit
        assert limit_from_dict(limit.to_dict()) is pickled(limit) is limit
        assert repr(limit) == "shared('key:adaptive-1', make=AdaptiveRateLimit)"
        assert states()["key:adaptive-1"] == "off"

    def test_a_registry_has_one_for_each_key(self):
        clients = Registry(lambda: AdaptiveRateLimit(on=SlowDownError, max_wait=0))
        clients["s3"].acquire().failed(SlowDownError())
        assert clients["sqs"].state == "off"
        assert clients.states() == {"s3": "limiting", "sqs": "off"}
        with pytest.raises(RefusedError, match=r"^limit 's3' is throttled"):
            clients["s3"](lambda: 1)()


@pytest.mark.usefixtures("clock")
def test_a_forked_child_owes_no_tokens():
    limit = throttled()
    held = [limit.acquire() for _ in range(5)]
    renew_locks()
    assert limit.metrics.tokens == 0
    assert limit.time_left(held[-1]) == 0


def test_a_sync_lease_may_be_reported_by_another_thread():
    limit = AdaptiveRateLimit(on=SlowDownError)
    lease = limit.acquire()
    in_thread(lambda: lease.failed(SlowDownError()))
    assert limit.state == "limiting"
