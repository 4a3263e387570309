"""Audit of source code: where something is retried, and what is wrong with it.

The audited code is neither imported nor executed.
"""

from retrykit.audit._audit import audit
from retrykit.audit._findings import Finding, Problem, Report
from retrykit.audit._rules import RULES, Rule
from retrykit.audit._sites import Behavior, Site

__all__ = ["RULES", "Behavior", "Finding", "Problem", "Report", "Rule", "Site", "audit"]
