"""Code shared by the integrations of HTTP clients; imports no client."""

__all__: list[str] = []
