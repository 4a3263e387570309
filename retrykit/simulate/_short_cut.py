"""Simulations that know, when a request arrives, when it will have been served.

An attempt is one event, since its end and what follows are known when it is sent. With
budgets it is two events, since a budget must be asked in chronological order.
"""

from bisect import insort
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, cast, final

from retrykit.schedules._randomness import SHARED_CALLS, SharedDraws
from retrykit.simulate._calendar import Calendar
from retrykit.simulate._deal import draw_makers, first_seed
from retrykit.simulate._events import SECOND, Events, nanoseconds
from retrykit.simulate._failures import FAILED, REFUSED, TIMED_OUT
from retrykit.simulate._fifo import NEVER, AmbiguousOrderError, first_in_first_out
from retrykit.simulate._load import ClosedLoad, OpenLoad, RecordedLoad
from retrykit.simulate._progress import Watcher
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._scene import Plan, Scene

__all__ = ["ShortCut", "applies", "arrays_apply", "has_budgets", "has_many"]
__all__ += ["run_arrays", "run_one_by_one"]


def applies(scene: Scene) -> bool:
    """Return whether a simulation can be run without events of the server."""
    server = scene.server
    return (
        scene.made_by is None
        and not scene.layers
        and len(scene.servers) == 1
        and server.order == "oldest_first"
        and server.drops == "nothing"
        and not scene.late_answers
        and not isinstance(scene.load, ClosedLoad)
        # The ends of service are in order only for one slot.
        and (server.slots == 1 or not has_budgets(scene))
    )


def has_budgets(scene: Scene) -> bool:
    """Return whether some clients have a retry budget."""
    return any(each.policy.budget is not None for each, _ in scene.populations)


def has_many(scene: Scene) -> bool:
    """Return whether there is enough to do for numpy, which takes time to import."""
    timeout = min(each.timeout for each, _ in scene.populations)
    rate = scene.load.rate
    return rate * scene.seconds >= _MANY_CALLS and rate * timeout >= _FEW_CALLS


_MANY_CALLS: Final = 20_000
# Of one timeout.
_FEW_CALLS: Final = 50


ShortCut = Callable[[Scene, Recorder, Watcher, Events], bool]
"""Runs a simulation, and counts it; returns False if the order of events is unclear.

It gets the events of the clock that budgets read.
"""


def run_arrays(
    scene: Scene,
    recorder: Recorder,
    watcher: Watcher,
    events: Events,  # noqa: ARG001  no budget reads the clock
) -> bool:
    """Run a simulation with numpy, as a `ShortCut`; it must satisfy `arrays_apply`."""
    arrays = import_module("retrykit.simulate._arrays")
    with suppress(AmbiguousOrderError):
        arrays.run_windows(scene, recorder, watcher)
        return True
    return False


def arrays_apply(scene: Scene) -> bool:
    """Return whether numpy is installed, and can run a simulation.

    Call it only if `applies` returns True.
    """
    (clients, rules), *others = scene.populations
    server, outage = scene.server, scene.outage
    if (
        others
        or clients.policy.budget is not None
        or server.slots > 1
        or server.most_waiting is not None
    ):
        return False
    plan = Plan(clients, rules)
    ways = [TIMED_OUT]
    if outage is not None:
        ways.append(_WAYS[outage.kind])
        if outage.slow_start or (outage.kind != "hang" and outage.share < 1):
            return False
    # Each attempt that fails at once does so before its timeout.
    return (
        all(plan.kinds[way] for way in ways)
        and plan.time_limit is None
        and (len({*ways}) == 1 or scene.network < plan.timeout)
        and find_spec("numpy") is not None
    )


_WAYS: Final = {"hang": TIMED_OUT, "refuse": REFUSED, "error": FAILED}


def run_one_by_one(
    scene: Scene, recorder: Recorder, watcher: Watcher, events: Events
) -> bool:
    """Run a simulation one attempt at a time, as a `ShortCut`."""
    with suppress(AmbiguousOrderError):
        if has_budgets(scene):
            _run_with_budgets(scene, recorder, watcher, events)
        else:
            _run_freely(scene, recorder, watcher)
        recorder.settle()
        return True
    return False


@final
class Anywhere:
    """A stand-in for the unknown number of an event, which cannot be compared."""

    def __lt__(self, other: object) -> bool:
        raise AmbiguousOrderError

    __gt__ = __le__ = __ge__ = __lt__


ANYWHERE: Final = Anywhere()
SUCCESS: Final = -1
"""A kind of event, beside the ways to fail."""


# The loops below are long, since a call for each of their steps would take as long as
# all of them.


def _run_freely(scene: Scene, recorder: Recorder, watcher: Watcher) -> None:  # noqa: C901, PLR0912, PLR0915
    """Run a simulation without budgets: each send is an event.

    Simultaneous events are in the order in which they are made. A retry is made by the
    failure before it, and that failure by the send that fails; the beginning of a call
    is made by the beginning of the call before it. So retries are ordered by their
    times, then by the times of the failures, then by the numbers of the sends.
    """
    end, network = recorder.end, scene.network
    calls, succeeded, failed = recorder.calls, recorder.succeeded, recorder.failed
    goodput, given_up = recorder.goodput, recorder.given_up
    last_failed, failures = recorder.last_failed, recorder.failures
    wait = recorder.waits.add
    receive, _ = first_in_first_out(scene.server, scene.outage, scene.seed, recorder)
    plans = [Plan(clients, rules) for clients, rules in scene.populations]
    deal = None
    if len(plans) > 1:
        shares = [clients.share for clients, _ in scene.populations]
        deal = draw_makers(shares, [1] * len(plans), scene.seed).__next__
    plan = plans[0]
    seed = first_seed(scene.seed) - SHARED_CALLS
    own: SharedDraws = SharedDraws(seed)
    calendar = Calendar(scene.load.rate, end)
    items, position = calendar.turn(), 0
    pages, bits = calendar.pages, calendar.bits
    times = cast("OpenLoad | RecordedLoad", scene.load).times(scene.seed)
    due, made, before, begins = next(times, NEVER), -1, -1, -1
    number = SHARED_CALLS - 1
    order = second = second_ends = 0
    call: tuple[Any, ...]
    while True:
        item = items[position]
        now = item[0]
        if due < now or (due == now and (made, before) <= item[1:3]):
            now = due
            if now >= second_ends:
                second = now // SECOND
                second_ends = (second + 1) * SECOND
            calls[second] += 1
            attempt = 1
            number += 1
            if number == SHARED_CALLS:
                number = 0
                seed += SHARED_CALLS
                own = SharedDraws(seed)
            if deal is not None:
                plan = plans[deal()[0]]
            if plan.draws is None:
                call = now, own, number, plan
            else:
                call = now, plan.draws, 0, plan
            if plan.remembers:
                call += ([],)
            made, before, begins = due, begins, order + 1
            due = next(times, NEVER)
        else:
            position += 1
            if len(item) == 1:
                watcher.reach(calendar.page_end, recorder)
                if calendar.page_end == end:
                    return
                items, position = calendar.turn(), 0
                continue
            now, _, _, attempt, call = item
            plan = call[3]
            if now >= second_ends:
                second = now // SECOND
                second_ends = (second + 1) * SECOND
        order += 1
        deadline = now + plan.timeout
        if plan.time_limit is not None:
            deadline = min(deadline, max(now, call[0] + plan.time_limit))
        arrives = now + network
        finish = receive(arrives, now)
        if 0 <= finish < deadline:
            succeeded[second] += 1
            if finish < end:
                goodput[finish // SECOND] += 1
                wait(finish - call[0])
            continue
        kind = TIMED_OUT
        fails = deadline
        if finish < 0 and arrives < deadline:
            kind, fails = -1 - finish, arrives
        failed[second] += 1
        last_failed[second] = now
        if fails < end:
            failures[fails // SECOND] += 1
        # As `Plan.delay_after`.
        delay: float | None
        if attempt < plan.most and plan.kinds[kind]:
            least, step = plan.delays[attempt]
            if step:
                least += step * call[1][attempt][call[2]]
            elif step is None:
                least = plan.delays.draw(attempt, None, call[1].seed + call[2])
            delay = least
            if (fails - call[0]) / SECOND + least >= plan.limit:
                delay = plan.delay_after(call, attempt, fails, kind)
        else:
            delay = plan.delay_after(call, attempt, fails, kind)
        if delay is not None:
            later = fails + nanoseconds(delay) if delay else fails
            item = later, fails, order, attempt + 1, call
            if later < calendar.page_end:
                insort(items, item, position)
            elif later < end:
                pages[later >> bits].append(item)
        elif fails < end:
            given_up[fails // SECOND] += 1


def _run_with_budgets(  # noqa: C901, PLR0912, PLR0915
    scene: Scene, recorder: Recorder, watcher: Watcher, events: Events
) -> None:
    """Run a simulation with budgets: each send, failure and success is an event.

    Simultaneous events are in the order in which they are made, by the number of the
    event that makes them. A success is made when its service starts: the number of that
    event is unknown, but its time is known.
    """
    end, network = recorder.end, scene.network
    calls, succeeded, failed = recorder.calls, recorder.succeeded, recorder.failed
    goodput, given_up = recorder.goodput, recorder.given_up
    last_failed, failures = recorder.last_failed, recorder.failures
    wait = recorder.waits.add
    receive, find_start = first_in_first_out(
        scene.server, scene.outage, scene.seed, recorder
    )
    plans = [Plan(clients, rules) for clients, rules in scene.populations]
    deal = draw_makers(
        [clients.share for clients, _ in scene.populations],
        [clients.processes for clients, _ in scene.populations],
        scene.seed,
    ).__next__
    seed = first_seed(scene.seed) - SHARED_CALLS
    own: SharedDraws = SharedDraws(seed)
    calendar = Calendar(scene.load.rate, end)
    items, position = calendar.turn(), 0
    add = calendar.add
    times = cast("OpenLoad | RecordedLoad", scene.load).times(scene.seed)
    due, made, before = next(times, NEVER), -1, -1
    number = SHARED_CALLS - 1
    order = second = second_ends = 0
    call: tuple[Any, ...]
    while True:
        item = items[position]
        now = item[0]
        if due < now or (due == now and (made, before) <= item[1:3]):
            now = due
            order += 1
            number += 1
            if number == SHARED_CALLS:
                number = 0
                seed += SHARED_CALLS
                own = SharedDraws(seed)
            population, process = deal()
            plan = plans[population]
            budget = plan.budgets[process]
            draws = (own, number) if plan.draws is None else (plan.draws, 0)
            made, before = due, order
            due = next(times, NEVER)
            call = now, *draws, plan, budget
            if plan.remembers:
                call += ([],)
            attempt, cost = 1, None
            if now >= second_ends:
                second = now // SECOND
                second_ends = (second + 1) * SECOND
            calls[second] += 1
        else:
            position += 1
            if len(item) == 1:
                watcher.reach(calendar.page_end, recorder)
                if calendar.page_end == end:
                    return
                items, position = calendar.turn(), 0
                continue
            now, _, _, attempt, call, cost, kind = item
            order += 1
            if kind is not None:
                plan, budget = call[3:5]
                events.now = now
                if kind == SUCCESS:
                    budget.deposit(cost)
                    continue
                failures[now // SECOND] += 1
                delay = plan.delay_after(call, attempt, now, kind)
                if budget is not None:
                    # In the order of a call.
                    budget.failed(
                        first=attempt == 1, retryable=plan.rules.retries(kind)
                    )
                    if delay is not None:
                        cost = budget.withdraw(plan.rules.error(kind))
                        if cost is None:
                            delay = None
                if delay is None:
                    given_up[now // SECOND] += 1
                else:
                    later = now + nanoseconds(delay) if delay else now
                    add((later, now, order, attempt + 1, call, cost, None), position)
                continue
            if now >= second_ends:
                second = now // SECOND
                second_ends = (second + 1) * SECOND
        plan = call[3]
        deadline = now + plan.timeout
        if plan.time_limit is not None:
            deadline = min(deadline, max(now, call[0] + plan.time_limit))
        arrives = now + network
        finish = receive(arrives, now)
        if 0 <= finish < deadline:
            succeeded[second] += 1
            if finish < end:
                goodput[finish // SECOND] += 1
                wait(finish - call[0])
            if call[4] is not None:
                started = find_start()
                add((finish, started, ANYWHERE, order, call, cost, SUCCESS), position)
            continue
        failed[second] += 1
        last_failed[second] = now
        if finish < 0 and arrives < deadline:
            add((arrives, now, order, attempt, call, cost, -1 - finish), position)
        else:
            add((deadline, now, order, attempt, call, cost, TIMED_OUT), position)
