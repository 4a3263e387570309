"""Concurrency limits: permits, the queue, sizes and algorithms, without a wait."""

import asyncio
import gc
import logging
import weakref

import pytest

from retrykit import ConfigError, RefusedError
from retrykit._internal.clocks import sync_clock
from retrykit.limits import Concurrency, Lease, Refusal
from tests._support.concurrency import in_thread
from tests._support.optional_trio import trio

FULL = "full: 1 call runs"


def counts(limit):
    return limit.metrics[:2]


def is_granted(lease):
    """Return whether a place in the queue has become a permit."""
    return lease.wait(at_most=0) is None


class TestPermits:
    def test_are_as_many_as_it_says(self):
        limit = Concurrency(3)
        leases = [limit.acquire() for _ in range(3)]
        assert all(isinstance(each, Lease) and each.delay == 0 for each in leases)
        assert limit.state == "full"
        assert limit.acquire() == Refusal("full: 3 calls run", None)
        assert limit.metrics == (3, 0, 3, 3, 1, 0, 0)

    @pytest.mark.parametrize("report", ["succeeded", "failed", "ignored"])
    def test_come_back_with_each_report_once(self, report):
        limit = Concurrency(2)
        first, second = limit.acquire(), limit.acquire()
        getattr(first, report)()
        for again in (first.succeeded, first.failed, first.ignored):
            again()
        assert counts(limit) == (1, 0)
        assert (first.generation, second.generation) == (0, 0)
        assert limit.state == "free"

    def test_come_back_with_a_lease_that_is_dropped(self):
        limit = Concurrency(1)
        lease = limit.acquire()
        assert limit.acquire().reason == FULL
        del lease
        assert counts(limit) == (0, 0)

    def test_come_back_with_a_lease_in_a_cycle(self):
        limit = Concurrency(1)
        cycle = [limit.acquire()]
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert counts(limit) == (0, 0)

    def test_places_come_back_with_a_lease_in_a_cycle(self):
        limit = Concurrency(1, queue=1)
        running = limit.acquire()
        cycle = [limit.acquire()]
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert counts(limit) == (1, 0)
        running.succeeded()
        assert counts(limit) == (0, 0)

    def test_come_back_even_if_the_finalizer_is_interrupted(self, monkeypatch):
        limit = Concurrency(1, queue=1)
        lease, waiting = limit.acquire(), limit.acquire()
        with monkeypatch.context() as patch:
            patch.delattr(type(lease), "__del__")
            del lease
        assert counts(limit) == (0, 1)
        # The next that asks finds out.
        limit.acquire()
        assert is_granted(waiting)

    def test_that_nobody_gave_back_go_to_those_that_wait(self, monkeypatch):
        limit = Concurrency(1, queue=2)
        lease, waiting = limit.acquire(), limit.acquire()
        with monkeypatch.context() as patch:
            patch.delattr(type(lease), "__del__")
            del lease
        assert limit.acquire().delay == float("inf")
        assert is_granted(waiting)

    def test_that_come_back_while_a_call_takes_its_place_are_handed_on(self):
        """As by a finalizer that runs in between."""
        limit = Concurrency(1, queue=1)
        running = limit.acquire()

        class Finalizing:
            def now(self):
                running.succeeded()
                return 0.0

        with sync_clock.use(Finalizing()):
            waiting = limit.acquire()
        assert not limit.is_waiting(waiting)
        assert counts(limit) == (1, 0)

    def test_keep_no_lease_alive(self):
        limit = Concurrency(1, queue=5)
        running, waiting = limit.acquire(), limit.acquire()
        found = [weakref.ref(running), weakref.ref(waiting)]
        running.succeeded()
        waiting.wait()
        waiting.succeeded()
        del running, waiting
        assert [each() for each in found] == [None, None]

    def test_a_lease_tells_its_limit(self):
        limit = Concurrency(1, name="db")
        lease = limit.acquire()
        assert repr(lease) == "<lease of Concurrency(at_most=1, name='db')>"
        lease.succeeded()
        assert repr(lease) == "<lease that is over>"


class TestQueue:
    def test_is_bounded(self):
        limit = Concurrency(1, queue=2)
        leases = [limit.acquire() for _ in range(3)]
        assert [each.delay for each in leases] == [0, float("inf"), float("inf")]
        assert limit.acquire().reason == "full: 1 call runs, and 2 wait"
        assert counts(limit) == (1, 2)
        assert limit.metrics.total_refused == 1

    def test_the_oldest_is_next(self):
        limit = Concurrency(1, queue=3)
        running, *waiting = [limit.acquire() for _ in range(4)]
        order = []
        while waiting:
            running.succeeded()
            running = next(each for each in waiting if is_granted_now(limit, each))
            order.append(waiting.index(running))
            waiting.remove(running)
        assert order == [0, 0, 0]

    def test_the_newest_is_next_if_the_order_is_lifo(self):
        limit = Concurrency(1, queue=3, order="lifo")
        running, *waiting = [limit.acquire() for _ in range(4)]
        order = []
        while waiting:
            running.succeeded()
            running = next(each for each in waiting if is_granted_now(limit, each))
            order.append(waiting.index(running))
            waiting.remove(running)
        assert order == [2, 1, 0]

    def test_drops_the_oldest_if_the_order_is_lifo(self):
        limit = Concurrency(1, queue=2, order="lifo")
        _running, *waiting = [limit.acquire() for _ in range(5)]
        assert counts(limit) == (1, 2)
        dropped = Refusal("full: a newer call took its place", None)
        assert [each.wait() for each in waiting[:2]] == [dropped] * 2
        assert waiting[0].wait() == dropped
        assert limit.metrics.total_displaced == 2
        assert limit.metrics.total_refused == limit.metrics.total_timed_out == 0

    def test_refuses_at_once_without_places_whatever_the_order(self):
        limit = Concurrency(1)
        _lease = limit.acquire()
        assert limit.acquire().reason == FULL

    def test_is_not_overtaken(self):
        limit = Concurrency(2, queue=2)
        first, second, *waiting = [limit.acquire() for _ in range(4)]
        first.succeeded()
        second.succeeded()
        # Nobody has waited yet, but the permits are theirs.
        assert limit.acquire().delay == float("inf")
        assert [is_granted(each) for each in waiting] == [True, True]

    @pytest.mark.parametrize("leave", ["ignored", "succeeded", "drop", "time"])
    def test_a_place_is_given_back(self, leave):
        limit = Concurrency(1, queue=2)
        running, first, second = [limit.acquire() for _ in range(3)]
        if leave == "time":
            assert first.wait(at_most=0).reason == "full: waited 0 s for a place"
        elif leave == "drop":
            del first
        else:
            getattr(first, leave)()
            assert first.wait().reason == "given back before its turn"
        assert counts(limit) == (1, 1)
        running.succeeded()
        assert is_granted(second)
        assert limit.metrics.total_timed_out == (leave == "time")

    def test_a_lease_that_has_its_permit_can_wait_again(self):
        limit = Concurrency(1, queue=1)
        running, waiting = limit.acquire(), limit.acquire()
        running.succeeded()
        assert (waiting.wait(), waiting.wait()) == (None, None)
        waiting.succeeded()
        assert waiting.wait().reason == "given back before its turn"

    @pytest.mark.parametrize("order", ["fifo", "lifo"])
    def test_forgets_places_that_were_given_back(self, order):
        limit = Concurrency(1, queue=2, order=order)
        _running, _waiting = limit.acquire(), limit.acquire()
        for _ in range(500):
            limit.acquire().ignored()
        assert len(limit._line) < 100  # noqa: SLF001  it is not visible otherwise
        assert counts(limit) == (1, 1)

    def test_a_finalizer_that_changes_the_line_meanwhile_loses_no_place(self):
        limit = Concurrency(1, queue=2)
        running, waiting = limit.acquire(), limit.acquire()

        class Dropped:
            """A place whose lease is gone, and whose look at it runs a finalizer."""

            def __call__(self):
                limit._line.popleft()  # noqa: SLF001  as a grant in the finalizer does

        limit._line.appendleft(Dropped())  # noqa: SLF001
        running.succeeded()
        assert is_granted(waiting)

    def test_a_signal_handler_that_takes_the_last_permit_meanwhile_keeps_it(self):
        limit = Concurrency(1, queue=1)
        running, waiting = limit.acquire(), limit.acquire()

        class Raced(set):
            def add(self, permit):
                super().add("that of the handler")
                super().add(permit)

        limit._running = Raced(limit._running)  # noqa: SLF001  in between two steps
        running.succeeded()
        assert counts(limit) == (1, 1)
        assert not is_granted(waiting)

    def test_a_queue_whose_places_are_all_gone_has_a_place(self, monkeypatch):
        limit = Concurrency(1, queue=1, order="lifo")
        _running, waiting = limit.acquire(), limit.acquire()
        # As if another thread had changed both when the process forked.
        limit._line.clear()  # noqa: SLF001
        newer = limit.acquire()
        assert newer.delay
        assert limit.metrics.total_displaced == 0
        del waiting

    def test_a_grant_that_was_interrupted_leaves_no_place_behind(self):
        limit = Concurrency(2, queue=1)
        _running, other = limit.acquire(), limit.acquire()
        waiting = limit.acquire()
        other.succeeded()
        # As if the interrupt came before its place was taken away.
        limit._waiting.add(waiting.place)  # noqa: SLF001
        assert is_granted(waiting)
        assert counts(limit) == (2, 0)

    def test_a_line_without_anybody_is_left(self):
        limit = Concurrency(1, queue=1)
        running, waiting = limit.acquire(), limit.acquire()
        # As if another thread had changed both when the process forked.
        limit._line.clear()  # noqa: SLF001
        running.succeeded()
        assert limit.state == "free"
        waiting.ignored()
        assert counts(limit) == (0, 0)


def is_granted_now(limit, lease):
    """Return whether a lease has a permit, and leave it in the queue if not."""
    return not limit.is_waiting(lease)


class TestResize:
    def test_grants_permits_to_those_that_wait(self):
        limit = Concurrency(1, queue=3)
        _running, *waiting = [limit.acquire() for _ in range(4)]
        limit.resize(3)
        assert counts(limit) == (3, 1)
        assert [is_granted_now(limit, each) for each in waiting] == [True, True, False]
        assert (limit.at_most, limit.metrics.at_most) == (3, 3)

    def test_cancels_none_that_run(self):
        limit = Concurrency(3, queue=1)
        leases = [limit.acquire() for _ in range(4)]
        limit.resize(1)
        assert counts(limit) == (3, 1)
        for lease in leases[:2]:
            lease.succeeded()
            assert limit.metrics.waiting == 1
        leases[2].succeeded()
        assert is_granted(leases[3])
        assert counts(limit) == (1, 0)

    def test_is_forgotten_by_a_copy(self):
        limit = Concurrency(3)
        limit.resize(5)
        assert limit.settings["at_most"] == 3
        assert repr(limit) == "Concurrency(at_most=3)"


class Steps:
    """An algorithm that answers with the next number, and keeps what it is told."""

    def __init__(self, *limits):
        self.limit, self.next, self.samples = limits[0], [*limits[1:]], []

    def sample(self, *, rtt, in_flight, dropped):
        self.samples.append((rtt, in_flight, dropped))
        answer = self.next.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class TestAlgorithms:
    def test_change_the_number(self, clock):
        limit = Concurrency(Steps(1, 3, 2), queue=5)
        running, *waiting = [limit.acquire() for _ in range(4)]
        clock.advance(2)
        running.succeeded()
        assert counts(limit) == (3, 0)
        clock.advance(1)
        waiting[2].failed()
        assert limit.at_most == 2
        assert limit.algorithm.samples == [(2.0, 1, False), (1.0, 3, True)]

    def test_are_told_of_a_call_once_and_of_nothing_that_is_ignored(self, clock):
        limit = Concurrency(Steps(5, 5, 5), queue=1)
        lease = limit.acquire()
        lease.failed()
        lease.succeeded()
        limit.acquire().ignored()
        limit.acquire()
        assert limit.algorithm.samples == [(0.0, 1, True)]

    @pytest.mark.parametrize("answer", [ValueError("odd"), 0, None, 2_000_000, True])
    def test_that_fail_are_logged_and_lose_no_permit(self, answer, caplog):
        limit = Concurrency(Steps(2, answer))
        limit.acquire().succeeded()
        assert (counts(limit), limit.at_most) == ((0, 0), 2)
        [record] = caplog.records
        text = "the concurrency limit stays at 2, because its algorithm failed"
        assert record.getMessage().startswith(text)
        assert record.levelno == logging.ERROR

    def test_are_copied_so_that_no_two_limits_share_one(self):
        algorithm = Steps(1, 4)
        first, second = Concurrency(algorithm), Concurrency(algorithm)
        first.acquire().succeeded()
        assert (first.at_most, second.at_most) == (4, 1)
        assert algorithm.samples == []

    def test_are_not_resized_by_hand(self):
        with pytest.raises(ConfigError, match="it adapts itself"):
            Concurrency(Steps(1)).resize(2)


def in_decorator(limit, fn):
    return limit(fn)()


def in_block(limit, fn):
    with limit.guard():
        return fn()


def in_coroutine(limit, fn):
    @limit
    async def call():
        return fn()

    return asyncio.run(call())


def in_async_block(limit, fn):
    async def call():
        async with limit.guard():
            return fn()

    return asyncio.run(call())


def in_trio(limit, fn):
    @limit
    async def call():
        await trio.lowlevel.checkpoint()
        return fn()

    return trio.run(call)


FORMS = [in_decorator, in_block, in_coroutine, in_async_block, in_trio]


@pytest.mark.parametrize("form", FORMS)
class TestForms:
    def test_a_call_has_a_permit(self, form):
        limit = Concurrency(1)
        assert form(limit, lambda: limit.state) == "full"
        assert limit.state == "free"

    def test_an_error_gives_it_back(self, form):
        limit = Concurrency(1)
        with pytest.raises(ZeroDivisionError):
            form(limit, lambda: 1 / 0)
        assert limit.state == "free"

    def test_a_refused_call_is_not_made(self, form):
        limit = Concurrency(1, name="db")
        _lease = limit.acquire()
        with pytest.raises(RefusedError) as caught:
            form(limit, lambda: 1 / 0)
        assert str(caught.value) == "limit 'db' is full: 1 call runs"
        assert caught.value.retry_in is None

    def test_a_call_that_waits_for_too_long_is_not_made(self, form, clock):
        limit = Concurrency(1, queue=1, max_wait="2s", name="db")
        _lease = limit.acquire()
        with pytest.raises(RefusedError) as caught:
            form(limit, lambda: 1 / 0)
        assert str(caught.value) == "limit 'db' is full: waited 2 s for a place"
        assert (counts(limit), clock.now()) == ((1, 0), 2.0)
        assert clock.sleeps == []


@pytest.mark.needs("threads")
def test_a_child_of_a_fork_keeps_the_permits_of_its_thread():
    limit = Concurrency(3, queue=3)
    theirs = []
    in_thread(lambda: theirs.extend(limit.acquire() for _ in range(2)))
    _mine, waiting = limit.acquire(), limit.acquire()
    in_thread(lambda: theirs.append(limit.acquire()))
    assert counts(limit) == (3, 2)
    limit._renew()  # noqa: SLF001  as in the child
    assert counts(limit) == (1, 1)
    # Their reports, if there were any, change nothing.
    for lease in theirs:
        lease.succeeded()
    assert is_granted(waiting)
    assert counts(limit) == (2, 0)
