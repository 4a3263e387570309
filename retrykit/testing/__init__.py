"""Retrying in tests: names, and nothing else.

Nothing here is imported by the rest of retrykit.
"""

from retrykit.testing.fake_clock import FakeClock, virtual_time

__all__ = ["FakeClock", "virtual_time"]
