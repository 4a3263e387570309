"""The libraries that retry, in Java."""

from tests.originals.java import LONGEST, register

register(
    "google",
    "com.google.api.client.util.ExponentialBackOff#nextBackOffMillis",
    {"initial_interval": 1, "randomization_factor": 0, "multiplier": 2},
    {"randomization_factor": 0.9, "multiplier": 30, "max_interval": LONGEST},
    {"initial_interval": LONGEST, "max_interval": LONGEST},
    {"initial_interval": 0.007, "multiplier": 1.1, "max_interval": 0.02},
)
