"""The state of a call: its history, its events, its final error."""

__all__: list[str] = []
