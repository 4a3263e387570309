"""Internals that all packages share, such as validation, durations and clocks."""

__all__: list[str] = []
