"""Texts of programs, and what the auditor sees in them."""

import ast
from textwrap import dedent

from retrykit.audit._context import with_context
from retrykit.audit._module_reader import read_module
from retrykit.audit._nesting import check_nesting
from retrykit.audit._project import Project
from retrykit.audit._repeated import Repeated
from retrykit.audit._rules import RULES, check_site

__all__ = ["audit_project", "audit_texts", "findings_of", "read_text", "site_of"]
__all__ += ["sites_of"]


def read_text(text, name="module"):
    """Return the facts of a module."""
    package = name.rpartition(".")[0]
    return read_module(ast.parse(dedent(text)), f"{name}.py", name, package)


def audit_texts(**texts):
    """Return the sites and findings of modules, by their names."""
    return audit_project(Project([read_text(y, x) for x, y in texts.items()]))


def audit_project(project):
    """Return the sites and findings of a project."""
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
