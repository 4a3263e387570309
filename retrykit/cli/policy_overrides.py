"""What the flags of the command line change in a policy."""

import os
from collections.abc import Mapping
from typing import Any

from retrykit.cli.options import FLAGS
from retrykit.config.environment import MUTUALLY_EXCLUSIVE, settings_from_env
from retrykit.policy.policy import Policy

__all__ = ["changed"]


def changed(base: Policy | None, flags: Mapping[str, Any]) -> Policy:
    """Return a policy as the environment and the flags change it.

    Flags win over variables, and these over the policy.

    >>> flags = {"default_retry_limit": "3", "env": None}
    >>> changed(None, flags).max_attempts
    4

    Args:
        base: The policy; None where there is nothing but flags.
        flags: What `policy_flags` gave.

    Raises:
        ConfigError: A flag or a variable is wrong.
    """
    stem = (flags.get("env") or "FLAG").removesuffix("_")
    environ = dict(os.environ) if flags.get("env") else {}
    given = {
        key: flags.get(flag[2:].replace("-", "_")) for flag, (key, *_) in FLAGS.items()
    }
    # A flag wins over the variable that says the same in other words.
    for pair in MUTUALLY_EXCLUSIVE:
        for key, rival in (pair, reversed(pair)):
            if given[key] is not None:
                environ.pop(f"{stem}_{rival}", None)
    environ |= {
        f"{stem}_{key}": text for key, text in given.items() if text is not None
    }
    display_names = {}
    for flag, (key, *_) in FLAGS.items():
        text = given[key]
        # What is set by its variable is told of by the name of that.
        if text is not None or not environ.get(f"{stem}_{key}"):
            display_names[f"{stem}_{key}"] = flag
    return settings_from_env(stem, environ, base=base, display_names=display_names)
