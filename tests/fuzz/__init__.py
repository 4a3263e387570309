"""Fuzzers of all parsers of retrykit: ``python -m tests.fuzz --help``."""
