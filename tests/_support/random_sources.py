"""Sources of chosen random numbers, in place of a call's own."""

__all__ = ["FixedRandom", "SequenceRandom"]


class FixedRandom:
    """A source of random numbers that always returns the same one."""

    def __init__(self, number):
        self.random = lambda: number


class SequenceRandom:
    """A source of random numbers that returns each of the given ones once."""

    def __init__(self, *numbers):
        self.random = iter(numbers).__next__
