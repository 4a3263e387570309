"""Integrations, one module or package per library; each needs only that library."""

__all__: list[str] = []
