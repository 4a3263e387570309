"""Code shared by the integrations of HTTP clients; it imports none of them."""

__all__: list[str] = []
