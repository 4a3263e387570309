"""Running calls: decorators, blocks, the two drivers, timeouts and nesting."""

__all__: list[str] = []
