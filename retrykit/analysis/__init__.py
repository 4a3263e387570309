"""What a policy will do: previews, lint warnings, charts and a page."""

__all__: list[str] = []
