"""The exports of a package as names of an expression."""


def exports_of(package):
    """Return the exports of a package, which it imports when they are first used."""
    return {name: getattr(package, name) for name in package.__all__}
