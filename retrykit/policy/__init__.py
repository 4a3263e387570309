"""The policy of a call: its settings, its conditions and its decisions."""

__all__: list[str] = []
