"""Facts that the calls of one policy have in common, found once for each policy.

A block and `Policy.call` make a controller for each call, which must be cheap.
"""

from typing import TYPE_CHECKING, cast, final

from retrykit._core.limits import most_attempts
from retrykit._core.result_conditions import Judges, judges_of
from retrykit.schedules._randomness import Draws, SharedDraws

if TYPE_CHECKING:
    from retrykit._core.policy import Policy
    from retrykit.limits._base import Limit

__all__ = ["Plan"]


@final
class Plan:
    """Facts about a policy that its controllers need, for any function and clock.

    Attributes:
        can_be_stopped: Whether the policy has a `stop_event`.
        judges: The conditions on results that the policy and its rules have.
        limits: The limits that are asked before each attempt. A client has already
            replaced registries with the limits of a host.
        limits_judge: Whether one of these limits judges results.
        keeps_frames: Whether errors before the last keep their frames.
        most_attempts: How many attempts a call makes at most; None if that is unlimited
            or unknown, or under ``limits="all"``.
        only_sleeps: Whether the pause before a retry is nothing but a sleep, unless
            observers are awaited.
        plain: The type of the last result that could be returned as it is; None if
            there was none. Other threads may replace it.
        same_draws: The draws of every call, if the policy has a seed; else None.
        time_limit: Time limit of a call, in seconds; None if unlimited, or under
            ``limits="all"``.
        timed: Whether attempts have a timeout or a hedge, whose frames are left out.
    """

    __slots__ = (
        "can_be_stopped",
        "judges",
        "keeps_frames",
        "limits",
        "limits_judge",
        "most_attempts",
        "only_sleeps",
        "plain",
        "same_draws",
        "time_limit",
        "timed",
    )

    def __init__(self, policy: "Policy") -> None:
        self.can_be_stopped = policy.stop_event is not None
        self.judges: Judges = judges_of(policy)
        self.keeps_frames = policy.keep_tracebacks or policy.raises == "group"
        self.limits = cast("tuple[Limit, ...]", policy.admission)
        self.limits_judge = any(each.judges_results for each in self.limits)
        own = policy.stop_event, policy.sleep
        self.only_sleeps = own == (None, None) and not self.limits
        self.plain: type | None = None
        seed = policy.seed
        self.same_draws: Draws | None = None
        if seed is not None:
            self.same_draws = SharedDraws(seed), 0
        # Where both limits must be reached, neither of them alone tells the end.
        joined = policy.limits == "all"
        self.time_limit = None if joined else policy.max_elapsed
        self.most_attempts = None if joined else most_attempts(policy)
        self.timed = policy.attempt_timeout is not None or policy.hedge is not None
