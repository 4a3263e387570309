"""A module that cannot be imported."""

raise RuntimeError("no settings here")
