"""Warnings about policies, and discovery of the policies of a code base.

Each warning has the name of its rule, a reason with the numbers of the policy,
and a fix. The rules use the `retrykit.analysis.preview` of a policy.

>>> from retrykit import Policy
>>> from retrykit.schedules import exponential
>>> policy = Policy(on=OSError, schedule=exponential(1).cap(60))
>>> for finding in check(policy):
...     print(finding)
no-jitter: none of its 4 delays is random: callers that fail together retry \
together, 1s later and each time after that; end the schedule with .jitter(0.5)

A test can check all policies of a package:

>>> for found in discover("retrykit.presets").found:
...     assert check(found.policy) == (), found

`RULES` lists all rules; `discover` imports the code that it searches.
"""

from retrykit.analysis.lint._discovery import Discovery, Found, discover
from retrykit.analysis.lint._importing import LoadFailure
from retrykit.analysis.lint._rules import RULES, Finding, LintRule, check

__all__ = ["RULES", "Discovery", "Finding", "Found", "LintRule", "LoadFailure"]
__all__ += ["check", "discover"]
