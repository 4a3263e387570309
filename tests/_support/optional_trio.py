"""Trio, or a placeholder that skips the tests that use it.

Trio cannot be imported where Python runs in a browser.
"""

from tests._support import required

__all__ = ["trio"]


class Placeholder:
    """Skips the test that calls it or one of its attributes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def current_task(self):
        """Raise the error of trio for code outside of its tasks."""
        raise RuntimeError("must be called from async context")

    def __call__(self, *args, **kwargs):
        required.skip_without("trio")


if required.installed("trio"):
    import trio
    import trio.lowlevel
    import trio.testing
else:
    trio = Placeholder()
