"""The package of a user, whose policies the documented commands name."""
