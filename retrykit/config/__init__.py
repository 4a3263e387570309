"""Policies read from files and environment variables, and written as source code."""

__all__: list[str] = []
