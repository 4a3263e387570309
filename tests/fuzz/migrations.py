"""Target: migration, with programs that use other libraries."""

import ast

from retrykit import ConfigError
from retrykit.migrate import migrate_text
from tests.fuzz.sources import program
from tests.fuzz.target import Target
from tests.fuzz.values import maybe, mutated
from tests.migrate.programs import PROGRAMS

__all__ = ["TARGETS"]

_IMPORTS = (
    *("import backoff, tenacity", "from tenacity import *", "import stamina as s"),
    *("from tenacity import retry, stop_after_attempt, wait_fixed", "import retrying"),
    *("from backoff import expo, on_exception", "from retrying import retry"),
    *("from urllib3 import Retry", "import tenacity as t, time, random"),
)


def _source(random):
    if maybe(random, 0.4):
        # Concrete trees are slow.
        return program(random, _IMPORTS, parts=(1, 2))
    lines = random.choice(PROGRAMS).before.splitlines(keepends=True)
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        place = random.randrange(len(lines))
        other = random.choice(random.choice(PROGRAMS).before.splitlines(keepends=True))
        change = random.choice([[], [lines[place]] * 2, [other], [lines[place], other]])
        lines[place : place + 1] = change
        lines = lines or [other]
    text = "".join(lines)
    return mutated(random, text) if maybe(random, 0.2) else text


def _migrate(text):
    try:
        return migrate_text(text)
    except (SyntaxError, RecursionError) as error:
        raise ConfigError(type(error).__name__) from None


def _use(migration, _random):
    """Check that the result is Python, and that there is nothing left to do."""
    try:
        ast.parse(migration.before)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    ast.parse(migration.after)
    again = migrate_text(migration.after)
    assert again.after == migration.after, "a second run changes more"


TARGETS = (Target("migrate", 4, _source, _migrate, _use),)
