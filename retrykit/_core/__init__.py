"""The private core: the policy, the loop and the record of a retried call.

Its public names are in `retrykit`, `retrykit.errors` and `retrykit.events`.
"""

__all__: list[str] = []
