"""Functions, blocks and calls that a project's retries repeat."""

from collections.abc import Iterable, Iterator

from retrykit.audit._module import Called, Definition, Module
from retrykit.audit._project import Project
from retrykit.audit._sites import Site
from retrykit.audit._values import Call, Reference, Value

__all__ = ["Repeated"]


class Repeated:
    """Functions, blocks and calls that the sites of a project repeat.

    Args:
        project: The project; its sites have been read.
        sites: Its sites.

    Attributes:
        project: The project.
        around: The sites that repeat each function, mostly the outermost first.
        inside: The sites in each function and its inner functions, and around these.
    """

    def __init__(self, project: Project, sites: Iterable[Site]) -> None:
        self.project = project
        self.around: dict[str, list[Site]] = {}
        self.inside: dict[str, list[Site]] = {}
        self._blocks: dict[str, list[tuple[int, int, Site]]] = {}
        self._blocks_of: dict[Site, list[tuple[str, int, int]]] = {}
        self._modules: dict[str, Module] | None = None
        for site in sites:
            self._add(site)
        for module in project.sources:
            for block in module.blocks:
                found = project.site_of(
                    project.resolve(block.value), module.path, block.end_line
                )
                if found is not None:
                    self._add_block(block.function, block.line, block.end_line, found)
        for name in [*project.definitions]:
            self._add_decorators(name)

    def _add(self, site: Site) -> None:
        for name in site.functions:
            self.around.setdefault(name, []).append(site)
        name = site.function
        while name in self.project.definitions:
            self.inside.setdefault(name, []).append(site)
            name = name.rpartition(".")[0]
        if site.library == "loop":
            self._add_block(site.function, site.line, site.end_line, site)

    def _add_block(self, function: str, first: int, last: int, site: Site) -> None:
        self._blocks.setdefault(function, []).append((first, last, site))
        self._blocks_of.setdefault(site, []).append((function, first, last))

    def _add_decorators(self, name: str) -> None:
        """Note that the sites within a function's decorators repeat the function."""
        for value, *_ in self.project.definitions[name].decorators:
            maker = self.called_function(value)
            for site in self.inside.get(maker, ()):
                known = self.around.setdefault(name, [])
                if site not in known and name not in site.functions:
                    known.append(site)

    def called_function(self, value: Value) -> str:
        """Return the project's function that is called or named; "" without one."""
        resolved = self.project.resolve(value)
        if type(resolved) is Call:
            resolved = resolved.function
        known = (
            type(resolved) is Reference and resolved.name in self.project.definitions
        )
        return resolved.name if known else ""

    def blocks(self, function: str, line: int) -> Iterator[Site]:
        """Yield the sites that repeat a line of a function, innermost first."""
        if function not in self._blocks:
            return
        found = [
            (last - first, site)
            for first, last, site in self._blocks[function]
            if first <= line <= last
        ]
        yield from (site for _, site in sorted(found, key=lambda each: each[0]))

    def calls(self, site: Site) -> Iterator[Called]:
        """Yield the calls in the functions and blocks that a site repeats."""
        known = self.project.definitions
        for name in self.functions(site):
            yield from known[name].calls
        for function, first, last in self._blocks_of.get(site, ()):
            for call in known[function].calls if function in known else ():
                if first <= call.line <= last:
                    yield call

    def definitions(self, site: Site) -> Iterator[Definition]:
        """Yield the functions that a site repeats, as a whole or in part."""
        known = self.project.definitions
        blocks = (function for function, *_ in self._blocks_of.get(site, ()))
        for name in dict.fromkeys([*self.functions(site), *blocks]):
            if name in known:
                yield known[name]

    def module_of(self, site: Site) -> Module | None:
        """Return the module that contains a site."""
        if self._modules is None:
            self._modules = {x.path: x for x in self.project.sources}
        return self._modules.get(site.path)

    def functions(self, site: Site) -> list[str]:
        """Return the functions of the project that a site repeats as a whole."""
        known = self.project.definitions
        return [name for name in site.functions if name in known]
