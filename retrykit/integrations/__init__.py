"""Integrations, one module per library. Each imports its own library, and no other."""

__all__: list[str] = []
