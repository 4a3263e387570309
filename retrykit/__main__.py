"""Entry point of ``python -m retrykit``."""

import sys

from retrykit._cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
