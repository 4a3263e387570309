"""Parts without a subject of their own: validation, durations, clocks, locks."""

__all__: list[str] = []
