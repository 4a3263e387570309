"""``python -m retrykit``: the command line; nothing else is known here."""

import sys

from retrykit.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
