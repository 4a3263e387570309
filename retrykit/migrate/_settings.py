"""Settings of a policy as texts, in the order in which they are written."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import libcst as cst

__all__ = ["GROUPS", "ORDER", "Settings", "Use", "ordered"]

Settings = dict[str, str]
"""The texts of settings, keyed by name."""

ORDER: Final = (
    *("policy", "on", "give_up_on", "on_result", "exception_groups", "max_attempts"),
    *("max_elapsed", "deadline", "limits", "schedule", "hint", "hint_cap"),
    *("hint_jitter", "stop_event", "sleep", "nested", "raises", "fallback"),
    *("observers", "name", "connect", "read", "redirect", "status", "other"),
    *("allowed_methods", "status_forcelist", "raise_on_redirect", "raise_on_status"),
    *("respect_retry_after_header", "remove_headers_on_redirect", "retry_after_max"),
)
"""The names of settings, in the order in which they are written."""

GROUPS: Final = (
    {"on", "give_up_on", "on_result", "exception_groups"},
    {"max_attempts", "max_elapsed", "deadline", "limits"},
    {"schedule", "hint", "hint_cap", "hint_jitter"},
    {"raises", "fallback"},
)
"""Groups of settings that usages share as a whole, or not at all."""


class Use(NamedTuple):
    """The code that a usage retries.

    Attributes:
        kind: Whether it is a function, a block, or the calls through an object.
        awaited: Whether it is awaited; None if that is not known.
        function: The decorated function, if there is one.
    """

    kind: Literal["function", "block", "object"]
    awaited: bool | None = None
    function: cst.FunctionDef | None = None


def ordered(settings: Mapping[str, str]) -> Settings:
    """Return settings in the order in which they are written."""
    return {name: settings[name] for name in ORDER if name in settings}
