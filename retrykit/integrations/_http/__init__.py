"""What the integrations of HTTP clients share."""

__all__: list[str] = []
