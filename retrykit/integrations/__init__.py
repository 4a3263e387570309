"""One module for each library that retrykit works with; each imports only its own."""

__all__: list[str] = []
