"""The settings of a policy as keyword arguments, for type checkers and signatures.

At run time, `retrykit._core.decorators` imports this module only to show a signature.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from retrykit._conditions import Condition
from retrykit._core.events import (
    AttemptFailed,
    AttemptStarted,
    GaveUp,
    HedgeStarted,
    Observer,
    RetryScheduled,
    Succeeded,
    Suspended,
)
from retrykit._core.result_conditions import ResultCondition
from retrykit._core.settings import (
    DeadlineRule,
    GroupRule,
    LimitRule,
    LongHintRule,
    NestedRule,
    Raises,
    RefusedRule,
    SleepFunction,
    StopEvent,
)
from retrykit._internal.durations import Duration
from retrykit._internal.redaction import Redaction
from retrykit.schedules._base import ScheduleLike

if TYPE_CHECKING:
    from retrykit._core.hedge import Hedge
    from retrykit._core.rules import Rule
    from retrykit._core.timeouts import AsArgument
    from retrykit.budgets._base import Budget
    from retrykit.hints._base import Hint
    from retrykit.limits._base import Limit
    from retrykit.limits._registry import Registry

__all__ = ["EventHooks", "OtherSettings", "PolicySettings"]


class EventHooks(TypedDict, total=False):
    """Observers keyed by event kind; each takes the events of that kind."""

    attempt_started: Callable[[AttemptStarted], object]
    hedge_started: Callable[[HedgeStarted], object]
    attempt_failed: Callable[[AttemptFailed], object]
    retry_scheduled: Callable[[RetryScheduled], object]
    suspended: Callable[[Suspended], object]
    succeeded: Callable[[Succeeded], object]
    gave_up: Callable[[GaveUp], object]


class OtherSettings(TypedDict, total=False):
    """The settings of a policy as keyword arguments, except `fallback`.

    With `fallback`, the return type of a decorated function includes the fallback's.
    """

    schedule: ScheduleLike
    max_attempts: int | None
    max_elapsed: Duration | None
    limits: LimitRule
    deadline: DeadlineRule
    on: Condition
    give_up_on: Condition
    on_result: ResultCondition | None
    exception_groups: GroupRule
    rules: "Iterable[Rule]"
    hint: "Hint | None"
    hint_cap: Duration | None
    on_long_hint: LongHintRule
    hint_jitter: float
    budget: "Budget | None"
    admission: "Iterable[Limit | Registry[Any]]"
    on_refused: RefusedRule
    hedge: "Hedge | None"
    attempt_timeout: "Duration | AsArgument | None"
    nested: NestedRule
    raises: Raises
    stop_event: StopEvent | None
    sleep: SleepFunction | None
    redact: Redaction
    keep_tracebacks: bool
    max_failures: int
    seed: int | None
    observers: Iterable[Observer] | EventHooks
    name: str | None


class PolicySettings(OtherSettings, total=False):
    """The settings of a policy as keyword arguments."""

    fallback: Any
