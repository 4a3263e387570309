"""Simulations, held against real servers and real processes of clients."""
