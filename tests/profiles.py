"""How properties are tested here."""

from hypothesis import settings

__all__ = ["quick", "thorough"]

# The same examples in each run: a suite that fails at times helps nobody.
quick = settings(max_examples=100, deadline=None, derandomize=True)
thorough = settings(quick, max_examples=200)
