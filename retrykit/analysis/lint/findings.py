"""What a rule is given, and what it finds; no policy is judged here."""

from collections.abc import Callable, Iterable
from typing import final

from retrykit._internal.durations import format_duration
from retrykit._internal.frozen import Frozen
from retrykit.analysis.preview import Preview
from retrykit.policy.policy import Policy
from retrykit.schedules.endless import is_endless

__all__ = ["CENTURY", "Advice", "Finding", "LintContext", "LintRule", "told"]

Advice = tuple[str, str]
"""The reason of a warning, and its fix."""

CENTURY = 36_525 * 86_400.0
"""In seconds; nobody needs to know how many days there are in more."""


@final
class Finding(Frozen):
    """A warning about a policy.

    >>> print(Finding("unbounded", "nothing ends it", "max_attempts=5"))
    unbounded: nothing ends it; max_attempts=5

    Attributes:
        rule: The name of the rule, in lower case with hyphens.
        reason: What is wrong, with the numbers of the policy.
        fix: What to write instead.
    """

    __slots__ = ("fix", "reason", "rule")
    rule: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}; {self.fix}"


@final
class LintContext(Frozen):
    """A policy that is looked at, and what is asked of it.

    Attributes:
        seen: What it does, to a call that fails every time.
        calls: Most calls that one request may make. Count.
        lifetime: How long a process lives, in seconds.
    """

    __slots__ = ("calls", "lifetime", "seen")
    seen: Preview
    calls: int
    lifetime: float

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.seen.policy

    @property
    def unbounded(self) -> bool:
        """Whether nothing ends a call, as far as can be seen."""
        limits = self.policy.max_attempts, self.policy.max_elapsed
        unlimited = self.seen.end is None and limits == (None, None)
        return unlimited and is_endless(self.policy.schedule)

    @property
    def scheduled(self) -> bool:
        """Whether no rule and no hint gives a retry another delay."""
        own = any(rule.schedule is not None for rule in self.policy.rules)
        return not own and self.policy.hint is None

    @property
    def most(self) -> int:
        """The most calls of the function; the fewest where there is no most."""
        if self.seen.calls:
            return self.seen.calls[1]
        soonest = self.seen.soonest
        return (len(self.seen.rows) if soonest is None else soonest) + 1

    @property
    def up_to(self) -> str:
        """What goes before a number that is the most, or the most looked at."""
        return "up to" if self.seen.end else "at least"


@final
class LintRule(Frozen):
    """Something that policies are looked at for.

    Attributes:
        about: What it warns of, in one line.
        find: What gives the reason and the fix of each warning.
    """

    __slots__ = ("about", "find")
    about: str
    find: Callable[[LintContext], Iterable[Advice]]


def told(duration: float) -> str:
    """Return a duration for people to read.

    >>> told(90), told(1e300)
    ('1m30s', 'over a century')

    Args:
        duration: Seconds, >= 0.
    """
    return format_duration(duration) if duration <= CENTURY else "over a century"
