"""Overrides of all policies of a context: fewer attempts, or no retries.

The innermost override applies alone.
"""

from typing import TYPE_CHECKING, final

from retrykit._internal.context import ContextOverride
from retrykit._internal.frozen import Frozen
from retrykit.policy.limits import override

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["RetryOverrides", "retry_overrides"]


@final
class RetryOverrides(Frozen):
    """Limits that apply to the calls that begin in a context.

    Attributes:
        max_attempts: Maximum number of attempts; None leaves it to the policies.
        disabled: Whether there is one attempt, and its outcome is final.
        source: What set them, such as ``limit_retries(3)``; None by default.
    """

    __slots__ = ("disabled", "max_attempts", "source")
    max_attempts: int | None
    disabled: bool
    source: str | None

    def apply_to(self, policy: "Policy") -> "Policy":
        """Return *policy* with these limits."""
        if self.disabled:
            return override(
                policy,
                max_attempts=1,
                limits="any",
                raises="last",
                limited_by=self.source,
            )
        limit, allowed = self.max_attempts, policy.max_attempts
        joined = policy.limits == "all"
        if limit is None or (allowed is not None and allowed <= limit and not joined):
            return policy
        changes = {"limits": "any", "limited_by": self.source}
        return override(policy, max_attempts=limit, **changes)


retry_overrides = ContextOverride(
    RetryOverrides(max_attempts=None, disabled=False, source=None)
)
"""The limits of this context."""
