"""Fingerprints of policies, by which a waiting job notices a changed policy."""

import hashlib
import json
import re

from retrykit.errors import ConfigError
from retrykit.policy.policy import Policy

__all__ = ["fingerprint"]


def fingerprint(policy: Policy) -> str:
    """Return a hash of a policy's settings: 16 hexadecimal digits.

    It is the same in every process. The name, the observers, and the settings that
    keep and redact failures do not count, since they do not affect retries; predicates
    count by their name.

    >>> fingerprint(Policy(name="a")) == fingerprint(Policy(name="b"))
    True
    >>> fingerprint(Policy()) == fingerprint(Policy(max_attempts=6))
    False
    """
    bare = policy.replace(
        name=None, observers=(), max_failures=2, redact=True, keep_tracebacks=False
    )
    try:
        text = json.dumps(bare.to_dict(), sort_keys=True)
    except ConfigError:
        # Memory addresses differ between processes.
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(bare))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
