"""Integrations, one module per library; each imports only its own library."""

__all__: list[str] = []
