"""What retrykit costs, beside a loop written by hand and beside its peers.

``python -m benchmarks`` measures everything in one run and prints one table.
"""
