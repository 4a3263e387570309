"""One module for each library that retrykit works with.

Each imports its own library, and no other.
"""

__all__: list[str] = []
