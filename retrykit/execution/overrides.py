"""What a test suite allows retried calls, whatever their policies say.

It changes the settings of a call that begins; it knows nothing of tests.
"""

from typing import TYPE_CHECKING, final

from retrykit._internal.context import ContextOverride
from retrykit._internal.frozen import Frozen

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["RetryOverrides", "retry_overrides"]


@final
class RetryOverrides(Frozen):
    """Bounds that come on top of every policy.

    Attributes:
        max_attempts: Most calls of the function; None if policies decide.
        disabled: Whether the first attempt is the last, come what may.
    """

    __slots__ = ("disabled", "max_attempts")
    max_attempts: int | None
    disabled: bool

    def apply_to(self, policy: "Policy") -> "Policy":
        """Return *policy* within these bounds."""
        if self.disabled:
            return policy.replace(max_attempts=1, on_result=None, raises="last")
        most, allowed = self.max_attempts, policy.max_attempts
        if most is None or (allowed is not None and allowed <= most):
            return policy
        return policy.replace(max_attempts=most)


retry_overrides: ContextOverride[RetryOverrides] = ContextOverride(
    RetryOverrides(max_attempts=None, disabled=False)
)
"""What bounds the calls that begin in this context."""
