"""Policies from files, environment variables, gRPC service configs and Python text."""

__all__: list[str] = []
