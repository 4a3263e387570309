"""Conditions that match a library's transient errors, and policies with them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FunctionType
from typing import Any, Unpack

from retrykit._conditions import default_condition
from retrykit._core.policy import Policy
from retrykit._core.setting_types import PolicySettings
from retrykit._internal.validation import check_instance, user_facing
from retrykit._own_retries import OwnRetries
from retrykit.hints._base import Hint

__all__ = ["TransientErrors", "fill_in"]


class TransientErrors(ABC):
    """Condition that matches a library's transient errors.

    Its repr and its pickle are the name ``transient`` in the library's module.

    Attributes:
        hint: The hint of its policies; None if the library's errors request no delays.
        matches_results: Whether the condition matches results, too, such as responses.
        own_retries: The library's own retries, and how to switch them off; None if it
            has none.
    """

    hint: Hint | None = None
    matches_results: bool = False
    own_retries: OwnRetries | None = None

    @abstractmethod
    def __call__(self, error: Any, /) -> bool:
        """Return whether an error is transient."""

    @user_facing
    def policy(
        self, base: Policy | None = None, /, **changes: Unpack[PolicySettings]
    ) -> Policy:
        """Return a policy that retries transient errors after the requested delays.

        If *base* already has this condition, nothing is filled in: other defaults that
        it lacks were removed on purpose.

        Args:
            base: Policy to start from; by default `Policy()`. Its own settings for
                errors, results and hints are kept.
            **changes: Settings of `Policy`.

        Raises:
            ConfigError: A setting is wrong.
        """
        on_result = self if self.matches_results else None
        return fill_in(base, changes, on=self, on_result=on_result, hint=self.hint)

    def __repr__(self) -> str:
        return "transient"

    def __reduce__(self) -> str:
        return "transient"


def fill_in(
    base: Policy | None,
    changes: PolicySettings,
    *,
    on: Callable[[Exception], bool],
    on_result: Callable[[Any], bool] | None = None,
    hint: Hint | None,
) -> Policy:
    """Return a policy with a library's defaults; see `TransientErrors.policy`."""
    suggestion = "write settings by their names, as max_attempts=4"
    if isinstance(base, FunctionType):
        suggestion = "write @retry(policy()) above it"
    policy = (
        Policy() if base is None else check_instance("policy", base, Policy, suggestion)
    )
    if on not in (policy.on, policy.on_result):
        policy = policy.replace(
            on=on if policy.on is default_condition else policy.on,
            on_result=on_result if policy.on_result is None else policy.on_result,
            hint=hint if policy.hint is None else policy.hint,
        )
    return policy.replace(**changes)
