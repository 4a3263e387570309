"""Fuzzers of everything that retrykit reads: ``python -m tests.fuzz --help``."""
