"""What happened in a call: its failures, its events and its final error."""

__all__: list[str] = []
