"""Lint rules, and `check`, which applies them to a policy."""

from collections.abc import Callable, Iterable, Iterator
from math import floor
from typing import final

from retrykit._conditions import types_of
from retrykit._core.limits import override
from retrykit._core.policy import Policy
from retrykit._core.timeouts import AsArgument, timeout_seconds
from retrykit._internal.durations import (
    CENTURY,
    Duration,
    format_duration,
    parse_duration,
)
from retrykit._internal.frozen import Frozen
from retrykit._internal.shares import parse_share
from retrykit._internal.validation import check_choice, check_integer, user_facing
from retrykit.analysis.lint._cap_analysis import caps
from retrykit.analysis.lint._stage_rules import STAGE_RULES
from retrykit.analysis.preview import Preview, preview
from retrykit.analysis.preview._caveats import has_other_delays
from retrykit.analysis.preview._rule_policies import has_only_rules, rule_policies
from retrykit.budgets._fleet import FleetBudget
from retrykit.budgets._ratio import RatioBudget
from retrykit.schedules._base import has_user_code, is_endless

__all__ = ["RULES", "Finding", "LintContext", "LintRule", "check"]

Advice = tuple[str, str]
"""The reason for a warning, and the fix."""

# As in the default policy: so few retries of a bug do little harm.
_FEW_ATTEMPTS = 5

# How many retries are searched for one that reaches a cap.
_MAX_SEARCHED = 1000

# Retries a second of all processes, which a server of a hundred may not survive
# (python -m benchmarks.fleet_budgets).
_MUCH_RESERVE = 10

# Retries after longer delays, in seconds, add little to the load of a service.
_QUICK = 10.0


@final
class Finding(Frozen):
    """A warning about a policy.

    >>> print(Finding("unbounded", "nothing ends it", "max_attempts=5"))
    unbounded: nothing ends it; max_attempts=5

    Attributes:
        rule: The name of the rule, in lower case with hyphens.
        reason: What is wrong, with the numbers of the policy.
        fix: The change that removes the warning.
    """

    __slots__ = ("fix", "reason", "rule")
    rule: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}; {self.fix}"


@final
class LintContext(Frozen):
    """The policy under inspection, and the thresholds of the rules.

    Attributes:
        preview: The preview of the policy.
        attempts: Maximum number of attempts that a call should make. Count, >= 1.
        lifetime: The shortest lifetime of a process, in seconds.
        processes: How many processes have the policy. Count, >= 1.
        load: Share of the server's capacity that calls take; None if it is unknown.
    """

    __slots__ = ("attempts", "lifetime", "load", "preview", "processes")
    preview: Preview
    attempts: int
    lifetime: float
    processes: int
    load: float | None

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.preview.policy

    @property
    def unbounded(self) -> bool:
        """True if no limit is known to end a call."""
        limits = self.policy.max_attempts, self.policy.max_elapsed
        unlimited = self.preview.end is None and limits == (None, None)
        return unlimited and is_endless(self.policy.schedule)

    @property
    def joined(self) -> bool:
        """True if the limits end a call only when both are reached."""
        return self.policy.limits == "all"

    @property
    def polls(self) -> bool:
        """True if the policy, apart from its rules, retries results but no errors."""
        return self.policy.on == () and self.policy.on_result is not None

    @property
    def scheduled(self) -> bool:
        """True if every delay comes from the policy's own schedule."""
        return not has_other_delays(self.policy)

    @property
    def attempt_limit(self) -> int:
        """The maximum number of attempts; if it is unknown, the minimum."""
        if self.preview.attempts:
            return self.preview.attempts[1]
        soonest = self.preview.min_retries
        return (len(self.preview.rows) if soonest is None else soonest) + 1

    @property
    def quick_attempts(self) -> int:
        """The number of attempts, without those whose delay may be 10 s or more."""
        return 1 + sum(row.high < _QUICK for row in self.preview.rows)

    @property
    def up_to(self) -> str:
        """``up to`` or ``at least``, to write before `attempt_limit`."""
        return "up to" if self.preview.end else "at least"


@final
class LintRule(Frozen):
    """A rule that policies are checked against.

    Attributes:
        summary: The problem that the rule warns of, in one line.
        find: Yields the reason and the fix of each warning.
    """

    __slots__ = ("find", "summary")
    summary: str
    find: Callable[[LintContext], Iterable[Advice]]


RULES: dict[str, LintRule] = {}
"""The rules, keyed by name, in the order of their warnings."""

_Find = Callable[[LintContext], Iterator[Advice]]


def _rule(name: str, summary: str) -> Callable[[_Find], _Find]:
    def register(find: _Find) -> _Find:
        RULES[name] = LintRule(summary, find)
        return find

    return register


@_rule("unbounded", "nothing ends a call that fails every time")
def _unbounded(context: LintContext) -> Iterator[Advice]:
    if context.unbounded:
        budget = context.policy.budget
        ends = "never ends" if budget is None else "goes on while its budget allows"
        reason = (
            "neither max_attempts nor max_elapsed is set, and the schedule goes on "
            f"after retry {len(context.preview.rows)}: a call that fails every time "
            f"{ends}"
        )
        yield reason, 'max_attempts=5, or max_elapsed="1m"'


@_rule("never-retries", "the first attempt is the last")
def _never_retries(context: LintContext) -> Iterator[Advice]:
    if context.policy.max_attempts == 1 and not context.joined:
        reason = "max_attempts=1 includes the first attempt: no retry is ever made"
        yield reason, "max_attempts=2 for one retry"
    elif context.policy.schedule.bounds(1) is None and context.scheduled:
        reason = "the schedule has no delay: no retry is ever made"
        yield reason, "schedule=[1.0] for one retry after a second"


@_rule("deadline-before-first-delay", "max_elapsed ends before the first retry")
def _deadline_before_first_delay(context: LintContext) -> Iterator[Advice]:
    bounds, end = context.policy.schedule.bounds(1), context.preview.end
    if not context.scheduled or not bounds or not end:
        return
    if (end.max_retries, end.reasons[1]) == (0, "max_elapsed"):
        soonest, latest = (_readable(each + context.preview.attempt) for each in bounds)
        reason = (
            f"max_elapsed={context.policy.max_elapsed!r}, and retry 1 comes after "
            f"{soonest} at the earliest: no retry is ever made"
        )
        yield reason, f"max_elapsed above {latest}, or a shorter first delay"


@_rule("timeout-never-retried", "an attempt that times out leaves no time for another")
def _timeout_never_retried(context: LintContext) -> Iterator[Advice]:
    policy, limit = context.policy, context.policy.attempt_timeout
    timeout = limit.seconds if isinstance(limit, AsArgument) else limit
    allowed, bounds = policy.max_elapsed, policy.schedule.bounds(1)
    if timeout is None or allowed is None or context.joined or not bounds:
        return
    # Only "stop" gives up before the delay.
    waits = policy.deadline == "stop" and context.scheduled
    if policy.max_attempts != 1 and timeout + bounds[0] * waits >= allowed:
        delay = f" and the first delay of {_readable(bounds[0])} take" * waits
        reason = (
            f"attempt_timeout={_readable(timeout)}{delay or ' takes'} all of "
            f"max_elapsed={_readable(allowed)}: an attempt that times out is never "
            "retried"
        )
        least = _readable(2 * timeout + bounds[1])
        yield reason, f"a shorter attempt_timeout, or max_elapsed of about {least}"


@_rule(
    "max-attempts-unreachable",
    "max_elapsed or the schedule ends every call before max_attempts",
)
def _max_attempts_unreachable(context: LintContext) -> Iterator[Advice]:
    most, last = context.policy.max_attempts, context.preview.limits.get("schedule")
    is_known = context.scheduled and context.preview.rows and context.preview.end
    if not is_known or most is None or context.attempt_limit >= most:
        return
    reason = f"every call after {context.attempt_limit} of max_attempts={most}"
    fix = f"max_attempts={context.attempt_limit}"
    if last is None or last.max_retries + 1 >= most:
        limit = f"max_elapsed={context.policy.max_elapsed!r}"
        yield f"{limit} ends {reason}", f"{fix}{_or_longer(context, most)}"
    else:
        yield f"the schedule ends {reason}", f"{fix}, or a longer schedule"


@_rule("max-elapsed-unreachable", "every call ends before max_elapsed")
def _max_elapsed_unreachable(context: LintContext) -> Iterator[Advice]:
    policy, longest = context.policy, context.preview.worst_case
    # The default is nobody's mistake.
    written = policy.max_elapsed != Policy().max_elapsed
    unreached = written and "max_elapsed" in context.preview.never_reached
    if unreached and longest is not None:
        reason = (
            f"max_elapsed={policy.max_elapsed!r} is never reached: {context.up_to} "
            f"{context.attempt_limit} attempts of {policy.attempt_timeout!r} s and "
            f"their delays take {_readable(longest)} at most"
        )
        yield reason, "leave it out, or shorten it"


@_rule("delays-never-used", "a limit ends every call before its schedule ends")
def _delays_never_used(context: LintContext) -> Iterator[Advice]:
    end, last = context.preview.end, context.preview.limits.get("schedule")
    if context.preview.rows and end and last and end.max_retries < last.min_retries:
        if end.reasons[1] == "max_elapsed" and not context.scheduled:
            return
        limit, count = end.reasons[1], last.min_retries
        reason = (
            f"{limit}={getattr(context.policy, limit)!r} ends every call after "
            f"{end.max_retries} of the {count} delays of its schedule"
        )
        if limit == "max_attempts":
            yield reason, f"a shorter schedule, or max_attempts={count + 1}"
        else:
            yield reason, f"a shorter schedule{_or_longer(context, count + 1)}"


@_rule("cap-never-reached", "no delay of a schedule reaches its cap")
def _cap_never_reached(context: LintContext) -> Iterator[Advice]:
    schedule = context.policy.schedule
    # The user's code may fail for a retry that no call makes.
    if not context.preview.end or not context.preview.rows or has_user_code(schedule):
        return
    for cap in caps(schedule):
        # One that more retries would reach does no harm.
        if not any(map(cap.reached, range(1, _MAX_SEARCHED + 1))):
            reason = f"{cap.text} changes no delay, however many retries are made"
            yield reason, cap.fix


@_rule("no-jitter", "callers that fail together retry together")
def _no_jitter(context: LintContext) -> Iterator[Advice]:
    delayed = [row for row in context.preview.rows if row.high > 0]
    is_list = context.policy.schedule.kind == "sequence"
    # Few callers poll for the same result, and a short list does little harm.
    if context.polls or (is_list and len(delayed) < _FEW_ATTEMPTS):
        return
    if len(delayed) > 1 and all(row.low == row.high for row in delayed):
        start = (
            "write schedules.sequence([...])" if is_list else "end the schedule with "
        )
        reason = (
            f"none of its {len(delayed)} delays is random: callers that fail together "
            f"retry together, {_readable(delayed[0].high)} later and each time after "
            "that"
        )
        yield reason, f"{start}.jitter(0.5)"


@_rule("capped-jitter", "a cap removes the jitter before it")
def _capped_jitter(context: LintContext) -> Iterator[Advice]:
    rows = context.preview.rows
    for cap in caps(context.policy.schedule):
        same = [row for row in rows if cap.removes_jitter(row.retry)]
        if len(same) > 1:
            reason = (
                f"{len(same)} of {len(rows)} delays are {_readable(same[-1].high)} for "
                f"every caller: {cap.text} removes the jitter before it"
            )
            yield reason, f"put {cap.text} before the jitter"


@_rule("fixed-seed", "a seed gives every call the same delays")
def _fixed_seed(context: LintContext) -> Iterator[Advice]:
    seed = context.policy.seed
    if seed is not None and any(row.low < row.high for row in context.preview.rows):
        reason = (
            f"seed={seed} gives every call the same delays, so jitter does not spread "
            "the calls"
        )
        yield reason, "remove seed, which is for tests"


@_rule("retries-at-once", "several retries have no delay")
def _retries_at_once(context: LintContext) -> Iterator[Advice]:
    rows = context.preview.rows
    at_once = sum(row.high == 0 for row in rows)
    # A single retry without a delay does no harm.
    if at_once > 1:
        reason = (
            f"{at_once} of {len(rows)} retries have no delay: a failing service is "
            "called again before it can recover"
        )
        yield reason, "schedule=exponential(0.5).cap(60).jitter(0.5)"


@_rule("retries-every-exception", "bugs in the code are retried many times")
def _retries_every_exception(context: LintContext) -> Iterator[Advice]:
    policy, most = context.policy, context.attempt_limit
    every = Exception in types_of(policy.on) and policy.give_up_on == ()
    if every and most > _FEW_ATTEMPTS:
        reason = (
            "on is Exception, and give_up_on is empty: a TypeError, which no retry "
            f"fixes, surfaces only after {context.up_to} {most} attempts"
        )
        types = "on=(ConnectionError, TimeoutError)"
        yield reason, f"{types}, or give_up_on=(TypeError, ValueError)"


@_rule("too-many-attempts", "a call that fails every time makes many attempts")
def _too_many_attempts(context: LintContext) -> Iterator[Advice]:
    most = context.attempt_limit
    quick = context.quick_attempts
    if quick > context.attempts and not context.unbounded and not context.polls:
        reason = (
            f"a call that fails every time makes {context.up_to} {most} attempts: an "
            f"outage multiplies the load by {most}, and by {most**2} if its caller "
            "retries as often"
        )
        fix = f"max_attempts={context.attempts}"
        yield reason, f'{fix} and limits="any"' if context.joined else fix


@_rule("reserve-of-each-process", "many processes have a budget with a reserve each")
def _reserve_of_each_process(context: LintContext) -> Iterator[Advice]:
    budget, processes = context.policy.budget, context.processes
    if not isinstance(budget, RatioBudget) or processes == 1:
        return
    together = budget.reserve * processes
    if together >= _MUCH_RESERVE:
        reason = (
            f"reserve={budget.reserve!r} applies to each process: {processes} of them "
            f"may make {together:g} retries a second beyond the ratio, and with 10 a "
            "second, a simulated server of 100 requests a second does not recover from "
            "a hang of 10 s at a load of 73 %"
        )
        yield reason, f"FleetBudget(), or RatioBudget({budget.ratio!r}, reserve=0)"


@_rule("recent-after-timeout", "a success before a hang is recent for its timeouts")
def _recent_after_timeout(context: LintContext) -> Iterator[Advice]:
    budget = context.policy.budget
    timeout = timeout_seconds(context.policy.attempt_timeout)
    if not isinstance(budget, FleetBudget) or timeout is None:
        return
    if budget.recent > timeout:
        recent, limit = map(format_duration, (budget.recent, timeout))
        reason = (
            f"recent={recent!r} is longer than the timeout of an attempt, {limit}: "
            "when the first attempts of a hang time out, the last successes before it "
            "are still recent, so that they are retried and lengthen its queue"
        )
        yield reason, f"recent={limit!r}"


@_rule("retry-storm", "retries without a budget exceed the capacity of the server")
def _retry_storm(context: LintContext) -> Iterator[Advice]:
    policy, load, attempts = context.policy, context.load, context.quick_attempts
    if load is None or policy.budget is not None or context.polls or attempts == 1:
        return
    kinds = types_of(policy.on)
    # A server that answers at once has no queue of old requests.
    at_once = kinds and all(issubclass(each, ConnectionError) for each in kinds)
    if attempts * load > 1 and not at_once:
        reason = (
            f"{attempts} attempts at a load of {load:.0%} are {attempts * load:.1f} "
            "times what the server can serve: after a hang it does not recover while "
            "its callers retry, as retrykit.simulate shows"
        )
        least = floor(1 / load)
        fix = "budget=FleetBudget()"
        yield reason, fix if least < 2 else f"{fix}, or max_attempts={least}"  # noqa: PLR2004  attempts


@_rule("library-retries-too", "a library retries within each attempt")
def _library_retries_too(context: LintContext) -> Iterator[Advice]:
    policy, most = context.policy, context.attempt_limit
    if most == 1:
        return
    conditions = [policy.on, policy.on_result]
    conditions += [part for rule in policy.rules for part in (rule.on, rule.on_result)]
    # Read by name: integrations set it, and are not imported here.
    found = (getattr(condition, "own_retries", None) for condition in conditions)
    fixes = (getattr(each, "text", each) for each in found)
    for fix in dict.fromkeys(each for each in fixes if isinstance(each, str)):
        reason = (
            "the library whose errors are retried makes retries of its own by default: "
            f"each of {context.up_to} {most} attempts is then several requests"
        )
        yield reason, f"switch them off: {fix}; then ignore this rule"


@_rule("call-outlives-process", "a call may take longer than its process lives")
def _call_outlives_process(context: LintContext) -> Iterator[Advice]:
    policy, attempt = context.policy, context.preview.attempt
    rows, worst = context.preview.rows, context.preview.worst_case
    if not rows or context.unbounded:
        return
    longest = rows[-1].start_high if worst is None else worst
    if worst is None and policy.max_elapsed is not None:
        longest = max(longest, policy.max_elapsed + attempt)
    if longest > context.lifetime:
        reason = (
            f"a call that fails every time takes up to {_readable(longest)}, and a "
            f"process may live for {_readable(context.lifetime)}: if the process ends, "
            "the remaining retries are lost"
        )
        fix = "run it on a durable job engine"
        allowed = context.lifetime - attempt
        if allowed > 0:
            # Only "stop" also bounds attempts that run into their timeout.
            bounded = attempt == 0 and policy.attempt_timeout is not None
            late = policy.deadline == "overshoot" or bounded
            stop = ', deadline="stop"' if late and policy.deadline != "stop" else ""
            alone = ', limits="any"' if context.joined else ""
            fix += f", or set max_elapsed={allowed!r}{stop}{alone}"
        yield reason, fix


def _register_stage_rules() -> None:
    for name, (summary, find) in STAGE_RULES.items():

        def find_in(
            context: LintContext, find: Callable[[Policy], Iterable[Advice]] = find
        ) -> Iterable[Advice]:
            return find(context.policy)

        RULES[name] = LintRule(summary, find_in)


_register_stage_rules()


def _or_longer(context: LintContext, attempts: int) -> str:
    """Return a clause that suggests a max_elapsed for this number of attempts.

    It is empty if they may take over a century, or if their time is not known.
    """
    if has_user_code(context.policy.schedule):
        # It may fail for a retry that no call makes.
        return ""
    longer = override(
        context.policy, max_attempts=attempts, max_elapsed=None, deadline="stop"
    )
    result = preview(longer, attempt=context.preview.attempt, samples=0)
    if result.end is None or result.rows[-1].start_high > CENTURY:
        return ""
    # Not the exact time: a retry without a delay would start at the limit, too late.
    return f", or max_elapsed={floor(result.rows[-1].start_high) + 1}"


def _readable(duration: float) -> str:
    return format_duration(duration) if duration <= CENTURY else "over a century"


@user_facing
def check(  # noqa: PLR0913  all but the first have defaults
    policy: Policy,
    *,
    attempt: Duration = 0.0,
    attempts: int = 10,
    lifetime: Duration = 3600.0,
    processes: int = 10,
    load: str | float | None = None,
    rules: Iterable[str] = RULES.keys(),
) -> tuple[Finding, ...]:
    """Return the warnings about a policy.

    The rules use the policy's `preview`, for up to 1000 retries. Conditions and hints
    are not called.

    >>> from retrykit.schedules import constant
    >>> every = Policy(schedule=constant(1).jitter(0.5), max_attempts=6, on=Exception)
    >>> [finding] = check(every)
    >>> finding.rule
    'retries-every-exception'
    >>> [finding] = check(Policy(on=OSError, schedule=[1, 5, 9, 9, 9]))
    >>> print(finding.reason)
    none of its 5 delays is random: callers that fail together retry together, 1s \
later and each time after that
    >>> check(Policy())
    ()

    Args:
        policy: The policy.
        attempt: How long each attempt takes. A duration, >= 0.
        attempts: Maximum number of attempts that a call should make, not counting
            attempts after a delay of 10 s or more. Count, >= 1.
        lifetime: The shortest lifetime of a process; longer calls need a job engine.
            A duration, >= 0.
        processes: How many processes call the same server with this policy, each with
            its own budget. Count, >= 1.
        load: Share of the server's capacity that calls take without an outage, such as
            ``"70%"`` or 0.7; None if it is unknown.
        rules: The names of the rules to apply; all by default.

    Raises:
        ConfigError: An argument is invalid, or the user's own schedule gave an
            invalid delay.
    """
    chosen = {check_choice("rules", name, RULES) for name in rules}
    limits = (
        check_integer("attempts", attempts, at_least=1),
        parse_duration("lifetime", lifetime),
        check_integer("processes", processes, at_least=1),
        None if load is None else parse_share("load", load),
    )
    parts = {"": policy}
    if has_only_rules(policy):
        # The policy's own schedule and limits apply to nothing else.
        parts = {f"rule {n}: ": x for n, x in enumerate(rule_policies(policy), 1)}
    contexts = [
        (part, LintContext(preview(each, attempt=attempt, samples=0), *limits))
        for part, each in parts.items()
    ]
    return tuple(
        Finding(name, f"{part}{reason}", fix)
        for name, rule in RULES.items()
        if name in chosen
        for part, context in contexts
        for reason, fix in rule.find(context)
    )
