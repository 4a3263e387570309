"""Warnings about policies, and discovery of the policies of a code base.

Each warning has the name of its rule, a reason with the numbers of the policy,
and a fix. The rules use the `retrykit.analysis.preview` of a policy.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> policy = Policy(on=OSError, schedule=exponential(1).cap(60).full_jitter())
>>> for finding in check(policy):
...     print(finding)
cap-never-reached: no delay up to retry 4 reaches .cap(60.0): the longest is 8s; \
remove .cap(60.0), or allow the 8 attempts it takes

A test can check all policies of a package:

>>> for found in discover("retrykit.presets").found:
...     assert check(found.policy) == (), found

`RULES` lists all rules; `discover` imports the code that it searches.
"""

from retrykit.analysis.lint.discovery import Discovery, Found, discover
from retrykit.analysis.lint.importing import LoadFailure
from retrykit.analysis.lint.rules import RULES, Finding, LintRule, check

__all__ = ["RULES", "Discovery", "Finding", "Found", "LintRule", "LoadFailure"]
__all__ += ["check", "discover"]
