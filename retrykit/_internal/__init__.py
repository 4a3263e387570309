"""Shared internals: validation, durations, clocks, locks."""

__all__: list[str] = []
