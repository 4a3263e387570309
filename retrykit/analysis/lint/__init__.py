"""Warnings about policies, and where the policies are.

Each warning has the name of its rule, a reason with the numbers of the policy,
and a fix to type. What the rules go by is `retrykit.analysis.preview`.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> policy = Policy(on=OSError, schedule=exponential(1).cap(60).full_jitter())
>>> for found in check(policy):
...     print(found)
cap-never-reached: no delay up to retry 4 comes to .cap(60.0): the longest is 8s; \
leave out .cap(60.0), or allow the 8 attempts it takes

A test can hold the policies of a package to them:

>>> for found in discover("retrykit.presets").found:
...     assert check(found.policy) == (), found

`RULES` are all the rules; `discover` imports what it is to find policies in.
"""

from retrykit.analysis.lint.discovery import Discovery, Found, discover
from retrykit.analysis.lint.findings import Finding, LintRule
from retrykit.analysis.lint.importing import ImportFailure
from retrykit.analysis.lint.rules import RULES, check

__all__ = [
    "RULES",
    "Discovery",
    "Finding",
    "Found",
    "ImportFailure",
    "LintRule",
    "check",
]
__all__ += ["discover"]
