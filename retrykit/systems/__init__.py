"""The settings of real systems, each reproduced from its documentation.

The same functions are in `retrykit.dialects`, where they return policies.
Nothing here knows how a file or a command line asks for them.
"""

from retrykit.systems.ground_truth import google, hostname_verification, zizq

__all__ = ["google", "hostname_verification", "zizq"]
