"""Texts of programs, and what the auditor sees in them."""

import ast
from textwrap import dedent

from retrykit.audit._context import with_context
from retrykit.audit._module import read_module
from retrykit.audit._nesting import check_nesting
from retrykit.audit._project import Project
from retrykit.audit._repeated import Repeated
from retrykit.audit._rules import RULES, check_site

__all__ = ["audit_texts", "findings_of", "site_of", "sites_of"]


def audit_texts(**texts):
    """Return the sites and findings of modules, by their names."""
    modules = [
        read_module(
            ast.parse(dedent(text)), f"{name}.py", name, name.rpartition(".")[0]
        )
        for name, text in texts.items()
    ]
    project = Project(modules)
    sites = tuple(project.sites())
    repeated = Repeated(project, sites)
    sites = tuple(with_context(each, repeated) for each in sites)
    findings = [*check_nesting(repeated)]
    for each in sites:
        findings += check_site(each, RULES)
    return sites, findings


def sites_of(text):
    """Return the sites of a module."""
    return audit_texts(module=text)[0]


def site_of(text):
    """Return the only site of a module."""
    [site] = sites_of(text)
    return site


def findings_of(text, rule):
    """Return the messages of a rule about a module, with their lines."""
    _, findings = audit_texts(module=text)
    return [f"{each.line}: {each.message}" for each in findings if each.rule == rule]
