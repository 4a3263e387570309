"""What tells a policy from another one, in whatever process.

A job that waits for weeks keeps the name of its policy and a fingerprint, never
the policy: the code that wakes it up has the policy, and maybe another one.
"""

import hashlib
import json
import re

from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["fingerprint"]


def fingerprint(policy: Policy) -> str:
    """Return what tells a policy from another one: 16 hexadecimal digits.

    The same in every process. Its name, its observers, and what it keeps and redacts
    of failures are no part of it, since they decide nothing; of a predicate it is
    the name and not the code.

    >>> fingerprint(Policy(name="a")) == fingerprint(Policy(name="b"))
    True
    >>> fingerprint(Policy()) == fingerprint(Policy(max_attempts=6))
    False
    """
    bare = policy.replace(
        name=None, observers=(), max_failures=2, redact=True, keep_tracebacks=False
    )
    try:
        data = bare.to_dict()
        # There were fingerprints before there were these settings.
        del data["redact"], data["keep_tracebacks"]
        text = json.dumps(data, sort_keys=True)
    except ConfigError:
        # Where a function is in memory is another place in every process.
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(bare))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
