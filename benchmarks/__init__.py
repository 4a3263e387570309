"""Benchmarks: retrykit, a hand-written loop, and other retry libraries.

``python -m benchmarks`` prints one table; docs/benchmarks.md lists the other commands.
"""
