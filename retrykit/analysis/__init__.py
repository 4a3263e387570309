"""Analysis of policies: previews, lint warnings, charts and an HTML report."""

__all__: list[str] = []
