"""Lint: warnings about policies, including policies found in source code.

Each warning has the name of its rule, a reason with the numbers of the policy,
and a fix. The rules use the `retrykit.analysis.preview` of a policy.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> policy = Policy(on=OSError, schedule=exponential(1).cap(60))
>>> for finding in check(policy):
...     print(finding)
no-jitter: none of its 4 delays is random: callers that fail together retry \
together, 1s later and each time after that; end the schedule with .jitter(0.5)

A test can check all policies in source code, which is neither imported nor executed:

>>> for found in discover("retrykit.backoff").found:
...     assert found.check() == (), found

`RULES` lists all rules.
"""

from retrykit.analysis.lint._rules import RULES, Finding, LintRule, check
from retrykit.analysis.lint._sources import Discovery, Found, discover

__all__ = ["RULES", "Discovery", "Finding", "Found", "LintRule", "check", "discover"]
