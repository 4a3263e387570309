"""Comparison of retrykit with other libraries, claim by claim.

``python -m benchmarks.comparison`` runs every claim, and docs/comparison.md has the
table. ``python -m benchmarks.comparison.price`` prints what the libraries cost.
"""
