"""A policy whose budget interrupts the program, as Ctrl-C does."""

from retrykit import Policy
from retrykit.budgets import Budget


class Interrupting(Budget):
    """A budget that interrupts the program at its n-th request."""

    def __init__(self, requests):
        self.left = requests

    def withdraw(self, error):
        """Interrupt, or allow the retry."""
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return 0

    def deposit(self, cost):
        """Take no note."""

    @property
    def balance(self):
        """Return what is left."""
        return self.left

    def __repr__(self):
        return "Interrupting()"


class Shared(Interrupting):
    """Counts the requests of all simulations together."""

    def __deepcopy__(self, _):
        return self


LATE = Policy(schedule=[0], budget=Interrupting(200))
FIRST = Policy(schedule=[0], budget=Interrupting(1))
SEARCHED = Policy(schedule=[0], budget=Shared(500))
