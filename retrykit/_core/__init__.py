"""The private core: the policy, the loop and the record of a retried call.

Public names are exported by `retrykit`, `retrykit.errors` and `retrykit.events`.
"""

__all__: list[str] = []
