"""Running calls: the two drivers, decorators, blocks, timeouts and nesting."""

__all__: list[str] = []
