"""Hedging, which sends one attempt several times and takes the first success."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from retrykit._core.call import RetryCall, current_entry, running_call
from retrykit._core.decision import (
    amatch_error,
    amatch_group,
    apply_hint,
    find_hint,
    match_error,
    match_group,
)
from retrykit._core.failures import StopReason
from retrykit._core.final_error import is_own_timeout
from retrykit._core.limits import retry_overrides
from retrykit._core.nesting import find_exhausted
from retrykit._core.result_conditions import (
    Judges,
    amatch_result,
    judges_of,
    match_result,
)
from retrykit._core.sends import (
    Release,
    Sends,
    SentOutcome,
    arelease_all,
    release_all,
)
from retrykit._core.steps import (
    await_delay,
    awithdraw_hedge,
    report_failed_send,
    wait_delay,
    withdraw_hedge,
)
from retrykit._core.thread_sends import thread_sends
from retrykit._internal import fast_path
from retrykit._internal.clocks import (
    AsyncClock,
    Clock,
    ClockSource,
    sync_clock,
)
from retrykit._internal.error_texts import error_text, type_name
from retrykit._internal.introspection import is_coroutine_function
from retrykit._internal.tracebacks import add_note_once
from retrykit.errors import GiveUp, RetryAfter, requested_delay

if TYPE_CHECKING:
    from retrykit._core.controller import RetryController
    from retrykit._core.hedge import Hedge
    from retrykit._core.policy import Policy
    from retrykit._core.task_sends import TaskSends

__all__ = ["Race", "amatch", "arace", "hedged", "match", "race"]


def hedged(
    policy: "Policy",
    hedge: "Hedge",
    fn: Callable[..., Any],
    release: Release | None = None,
) -> Callable[..., Any]:
    """Return a function that hedges each call of *fn* under a policy.

    Args:
        policy: As in `race`.
        hedge: As in `race`.
        fn: Sends an attempt once.
        release: Frees what the result of a send holds; None if results hold nothing.
    """
    if is_coroutine_function(fn):
        # Imported here: sync code needs no event loop.
        from retrykit._core.task_sends import task_sends  # noqa: PLC0415
        from retrykit._internal.loop_clock import async_clock  # noqa: PLC0415

        async def ahedged_call(*args: Any, **kwargs: Any) -> Any:
            if _is_disabled():
                return await fn(*args, **kwargs)
            hedge.begin()
            send, sends = partial(fn, *args, **kwargs), task_sends()
            sends.release = release
            return _unwrap(await arace(policy, hedge, send, sends, async_clock))

        return ahedged_call

    def hedged_call(*args: Any, **kwargs: Any) -> Any:
        if _is_disabled():
            return fn(*args, **kwargs)
        hedge.begin()
        send, sends = partial(fn, *args, **kwargs), thread_sends()
        sends.release = release
        return _unwrap(race(policy, hedge, send, sends, sync_clock))

    return hedged_call


def _is_disabled() -> bool:
    """Return whether a test has switched retries and hedges off."""
    return bool(fast_path.blockers) and retry_overrides.get().disabled


class Race:
    """The sends of one attempt, when the next one is due, and the outcome that counts.

    Args:
        policy: The conditions on errors and results, and the hint.
        hedge: The delay and the number of sends.
        now: The reading of the clock when the first send begins, in seconds.
        last_counts: Whether the last outcome counts if all sends fail, so that earlier
            ones can be released; else the first send's outcome counts.

    Attributes:
        judges: The conditions on results.
        outcome: The outcome of the attempt, once it is known.
        running: Number of sends whose outcome is not known yet.
    """

    def __init__(
        self,
        policy: "Policy",
        hedge: "Hedge",
        now: float,
        *,
        last_counts: bool = False,
    ) -> None:
        self._policy, self._hedge = policy, hedge
        self.judges = policy._derive(judges_of)
        self._begun = now
        known = hedge.current_delay
        self._delay = known or 0.0
        self._due = now + self._delay
        # Without a delay, the attempt is sent once, and how long it takes is noted.
        self._left = 0 if known is None else hedge.at_most - 1
        self.running = 1
        self._failed: list[SentOutcome] = []
        self._last_word: SentOutcome | None = None
        self._last_counts = last_counts
        # The outcomes that are not released, and the one that counts if no more come.
        self._kept: list[SentOutcome] = []
        self._standing: SentOutcome | None = None
        self.outcome: SentOutcome | None = None

    def time_to_next(self, now: float) -> float | None:
        """Return the seconds until the next send is due; None if there is none."""
        return max(self._due - now, 0.0) if self._left else None

    def sent(self, now: float) -> int:
        """Record that another send begins; return its number."""
        self._left -= 1
        self.running += 1
        self._due = now + self._delay
        return self._hedge.at_most - self._left

    def begun(self, possible: bool) -> None:  # noqa: FBT001
        """Record whether the send could begin; if not, send nothing more."""
        if possible:
            self._standing = None
        else:
            self.running -= 1
            self.stop()

    def stop(self) -> None:
        """Send nothing more; end the race if all sends have failed."""
        self._left = 0
        self._end_if_all_failed()

    def received(self, outcome: SentOutcome) -> SentOutcome:
        """Keep and return the outcome of a send, which is judged next."""
        self.running -= 1
        self._kept.append(outcome)
        return outcome

    @property
    def standing(self) -> SentOutcome | None:
        """The outcome that counts if no further send ends, or None."""
        return self.outcome or self._standing

    def drop_others(self, counting: SentOutcome | None) -> list[SentOutcome]:
        """Forget and return all outcomes except the one that counts."""
        kept, self._kept = self._kept, []
        for each in kept:
            if each is counting:
                self._kept.append(each)
        return [each for each in kept if each is not counting]

    def ended(self, outcome: SentOutcome, matched: "_Matched", now: float) -> None:
        """Update the race after a send has ended."""
        if matched is _ACCEPTED:
            # How long the first send would have taken is not known, if another won.
            self._hedge.note(now - self._begun)
            self._end(outcome)
            return
        self._failed.append(outcome)
        if isinstance(matched, StopReason):
            # It is not to be retried, whatever the other sends do.
            self._end(outcome)
            return
        self._schedule_next_send(outcome, matched, now)
        self._standing = self._last_word or outcome
        self._end_if_all_failed()

    def _end_if_all_failed(self) -> None:
        if not self.running and not self._left:
            counting = self._failed[-1]
            if not self._last_counts:
                counting = min(self._failed, key=attrgetter("number"))
            self._end(self._last_word or counting)

    def _schedule_next_send(
        self, outcome: SentOutcome, matched: int | None, now: float
    ) -> None:
        """Make the next send due at once, or when the failure's hint asks for it.

        Nothing more is sent if the hint is `GiveUp`, or asks for a longer delay than
        the policy allows before a retry.
        """
        error: Any = outcome.error
        hint: Any = error if isinstance(error, RetryAfter) else None
        if hint is None and (self._policy.hint is not None or self._policy.rules):
            hint = find_hint(self._policy, error, outcome.result, matched)
        delay = 0.0 if hint is None else self._allowed_delay(hint)
        if isinstance(delay, StopReason):
            # If the others also fail, no retry may go against it.
            self._left, self._last_word = 0, outcome
        else:
            self._due = now + delay

    def _allowed_delay(self, hint: float | RetryAfter | GiveUp) -> float | StopReason:
        """Return the delay that a hint asks for, or why the policy forbids it."""
        policy, call = self._policy, _hedged_call(self._policy)
        if call is None:
            # Without a policy there is no hint except `RetryAfter`.
            return requested_delay(hint) or 0.0
        allowed = None if policy.limits == "all" else policy.max_elapsed
        return apply_hint(policy, call, call.attempt, call.elapsed, allowed, 0.0, hint)

    def _end(self, outcome: SentOutcome) -> None:
        """Keep the outcome of the attempt; note in its error which other sends failed.

        These are also reported to the policy's budget.
        """
        self.outcome, error, others = outcome, outcome.error, []
        for each in self._failed:
            if each is not outcome:
                report_failed_send(self._policy.budget)
                if isinstance(each.error, Exception) and each.error is not error:
                    others.append(self._describe(each.number, each.error))
        if others and isinstance(error, Exception):
            # One note: the next attempt may raise the same error, and replaces it.
            add_note_once(error, f"send {'; send '.join(others)}")

    def _describe(self, number: int, error: Exception) -> str:
        text = error_text(error, redact=self._policy.redact)
        kind = type_name(type(error))
        what = f"{number} of this attempt failed with {kind}"
        return f"{what}: {text}" if text else what


_ACCEPTED: Final = object()
"""The match of a send that has succeeded."""

_Matched = Any
"""`_ACCEPTED`, or the answer of `match_error`."""


def race(
    policy: "Policy",
    hedge: "Hedge",
    send: Callable[[], Any],
    sends: "Sends",
    clock: ClockSource[Clock],
) -> SentOutcome:
    """Send an attempt, and send it again, until its outcome is known.

    Args:
        policy: The conditions on errors and results, the hint, the budget.
        hedge: When the attempt is sent again.
        send: Sends the attempt once.
        sends: Runs the sends. If it has a `release`, this frees each result that cannot
            be the outcome of the attempt any more; and if all sends fail, the last
            outcome counts.
        clock: The clock of the call.
    """
    release = sends.release
    race = Race(policy, hedge, clock.now(), last_counts=release is not None)
    outcome: SentOutcome | None = None
    try:
        with sends:
            sends.start(send)
            while race.outcome is None:
                delay = race.time_to_next(clock.now())
                ended = None
                if race.running:
                    ended = sends.wait(delay)
                elif delay:
                    wait_delay(policy, clock, delay)
                if ended is not None:
                    matched = match(policy, race.judges, race.received(ended))
                    race.ended(ended, matched, clock.now())
                elif not _may_send(policy, hedge):
                    race.stop()
                elif not withdraw_hedge(policy.budget):
                    hedge.give_back()
                    race.stop()
                else:
                    _notify(policy, race.sent(clock.now()))
                    race.begun(sends.start(send))
                if release is not None:
                    release_all(release, race.drop_others(race.standing))
        outcome = race.outcome
        return outcome
    finally:
        if release is not None:
            # A call that is interrupted has no outcome.
            release_all(release, race.drop_others(outcome) + sends.ended)


def match(policy: "Policy", judges: Judges, outcome: SentOutcome) -> "_Matched":
    """Match the outcome of a send.

    Returns:
        `_ACCEPTED` if the send has succeeded; else the rule that its failure matches,
        or why it is not retried, as from `match_error`.
    """
    error, rejection = outcome.error, None
    if error is None:
        # If this fails, the driver fails in the same way.
        with suppress(Exception):
            rejection = match_result(judges, outcome.result)
        if rejection is None:
            return _ACCEPTED
    elif not isinstance(error, Exception):
        return StopReason.NOT_RETRYABLE
    if _is_exhausted(policy, error, outcome.result):
        return StopReason.NESTED
    if rejection is not None:
        return rejection[0]
    failure = cast("Exception", error)
    if isinstance(failure, ExceptionGroup):
        return match_group(policy, failure)
    own = is_own_timeout(failure)
    return match_error(policy, failure, own_timeout=own)


async def arace(
    policy: "Policy",
    hedge: "Hedge",
    send: Callable[[], Awaitable[Any]],
    sends: "TaskSends",
    clock: ClockSource[AsyncClock],
) -> SentOutcome:
    """Send an attempt, and send it again, as `race` does."""
    release = sends.release
    race = Race(policy, hedge, clock.now(), last_counts=release is not None)
    outcome: SentOutcome | None = None
    try:
        async with sends:
            sends.start(send)
            while race.outcome is None:
                delay = race.time_to_next(clock.now())
                ended = None
                if race.running:
                    ended = await sends.wait(delay)
                elif delay:
                    await await_delay(policy, clock, delay)
                if ended is not None:
                    matched = await amatch(policy, race.judges, race.received(ended))
                    race.ended(ended, matched, clock.now())
                elif not _may_send(policy, hedge):
                    race.stop()
                elif not await awithdraw_hedge(policy.budget):
                    hedge.give_back()
                    race.stop()
                else:
                    _notify(policy, race.sent(clock.now()))
                    race.begun(sends.start(send))
                if release is not None:
                    await arelease_all(release, race.drop_others(race.standing))
        outcome = race.outcome
        return outcome
    finally:
        if release is not None:
            # A call that is interrupted has no outcome.
            await arelease_all(release, race.drop_others(outcome) + sends.ended)


async def amatch(policy: "Policy", judges: Judges, outcome: SentOutcome) -> "_Matched":
    """Match the outcome of a send, as `match` does."""
    error, rejection = outcome.error, None
    if error is None:
        # If this fails, the driver fails in the same way.
        with suppress(Exception):
            rejection = await amatch_result(judges, outcome.result)
        if rejection is None:
            return _ACCEPTED
    elif not isinstance(error, Exception):
        return StopReason.NOT_RETRYABLE
    if _is_exhausted(policy, error, outcome.result):
        return StopReason.NESTED
    if rejection is not None:
        return rejection[0]
    failure = cast("Exception", error)
    if isinstance(failure, ExceptionGroup):
        return await amatch_group(policy, failure)
    own = is_own_timeout(failure)
    return await amatch_error(policy, failure, own_timeout=own)


def _unwrap(outcome: SentOutcome) -> Any:
    """Return the result of an attempt, or raise its error."""
    error = outcome.error
    if error is None:
        return outcome.result
    try:
        raise error
    finally:
        # No frame may keep the error that it raises.
        del error, outcome


def _may_send(policy: "Policy", hedge: "Hedge") -> bool:
    """Return whether the hedge and the policy's `stop_event` allow another send."""
    event = policy.stop_event
    return (event is None or not event.is_set()) and hedge.may_send()


def _notify(policy: "Policy", number: int) -> None:
    """Record a hedge in the retried call that it belongs to, if there is one."""
    call = _hedged_call(policy)
    if call is not None:
        cast("RetryController", call.controller).record_hedge(call, number)


def _hedged_call(policy: "Policy") -> RetryCall | None:
    """Return the call whose attempt is hedged; None for a hedge without a policy."""
    # The policy made for a hedge without one has no hedge.
    entry = None if policy.hedge is None else current_entry.get()
    return None if entry is None else running_call(entry)


def _is_exhausted(policy: "Policy", error: Exception | None, result: Any) -> bool:
    """Return whether a call nested in a send has used up its retries.

    False under ``nested="retry"``, and for a hedge without a policy.
    """
    if policy.nested == "retry":
        return False
    call = _hedged_call(policy)
    if call is None:
        return False
    return find_exhausted(call, error, result) is not None
