"""The modules of a project, the values of their names, and the sites in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from retrykit.audit._borrowed import (
    Borrowed,
    FunctionNode,
    always_raises,
    called_name,
    may_contain_delays,
)
from retrykit.audit._files import SourceFile
from retrykit.audit._handlers import error_names
from retrykit.audit._libraries import BY_KEYWORD, LIBRARIES, behavior_of
from retrykit.audit._libraries.celery import within_task
from retrykit.audit._loops import Loop
from retrykit.audit._module import Candidate, Definition, Module
from retrykit.audit._reading import Reading, read_file, read_functions
from retrykit.audit._sites import Behavior, Site
from retrykit.audit._values import UNKNOWN, Call, Reference, Value, part_of, replace

__all__ = ["Project"]

_DEPTH = 12
_MOST_STEPS = 1_000
"""The most references that are followed for one value."""
_MOST_LINES = 20_000
"""Longer files without sites are taken for generated code, and not read."""
_PARTIAL = Reference("functools.partial")
_OF_TENACITY = Reference("tenacity.retry")
_RETRY_OF_TASK = Reference("celery.Task.retry")
_ANY_TASK = Call(UNKNOWN, (), (("max_retries", UNKNOWN),))


def _load_nothing(_name: str) -> None:
    return None


def _read_nothing(_path: str, _borrowed: Borrowed) -> None:
    return None


class Project:
    """Modules that have been read, which may import each other.

    Args:
        modules: The modules.
        load: Returns a module that has not been read yet, by its name; None if there is
            none that can be read.
        read_again: Reads a module again, with functions of other modules; returns None
            if it cannot be read.

    Attributes:
        sources: The given modules.
        modules: The modules that have been read so far, keyed by name.
        definitions: The functions of these modules, keyed by full name.
    """

    def __init__(
        self,
        modules: Iterable[Module],
        load: Callable[[str], Module | None] = _load_nothing,
        read_again: Callable[[str, Borrowed], Module | None] = _read_nothing,
    ) -> None:
        self.sources = tuple(modules)
        self._load, self._read_again = load, read_again
        self._steps = 0
        self.modules: dict[str, Module] = {}
        self.definitions: dict[str, Definition] = {}
        for each in self.sources:
            self._add(each.name, each)
        self._find = lru_cache(maxsize=100_000)(self._find_uncached)
        self._functions_in = lru_cache(maxsize=100)(read_functions)
        self._made: dict[Call, list[Site]] = {}
        # By identity: two sites of one expression may be equal.
        self._calls: dict[int, tuple[Site, Call]] = {}
        self._named: dict[tuple[Call, str], list[str]] | None = None

    @classmethod
    def of_files(
        cls, files: Sequence[SourceFile], readings: Sequence[Reading]
    ) -> "Project":
        """Return the project of source files.

        Files that have not been parsed are parsed when a site needs them.

        Args:
            files: The files.
            readings: The result of reading each file.
        """
        indexes: dict[str, int] = {}
        aliases = Counter(each.alias for each in files)
        for index, each in enumerate(files):
            indexes.setdefault(each.module, index)
        for index, each in enumerate(files):
            # A name that several scripts have identifies none of them.
            if each.alias and aliases[each.alias] == 1:
                indexes.setdefault(each.alias, index)

        def load(name: str) -> Module | None:
            index = indexes.pop(name, None)
            if index is None or readings[index].lines > _MOST_LINES:
                return None
            read = readings[index].module
            return read or read_file(files[index], names_only=True).module

        by_path = {each.path: each for each in files}

        def read_again(path: str, borrowed: Borrowed) -> Module | None:
            return read_file(by_path[path], borrowed=borrowed).module

        modules = (each.module for each in readings if each.module is not None)
        return cls(modules, load, read_again)

    def _add(self, name: str, module: Module) -> None:
        # Scripts in several folders may have the same name.
        self.modules.setdefault(name, module)
        for each in module.definitions:
            self.definitions.setdefault(each.name, each)

    def resolve(self, value: Value, depth: int = 0) -> Value:
        """Return a value in which the project's names are replaced by their values.

        Args:
            value: Any value.
            depth: The number of names that have led to it.
        """
        if depth == 0:
            self._steps = 0
        self._steps += 1
        if depth > _DEPTH or self._steps > _MOST_STEPS:
            return UNKNOWN
        return replace(value, lambda each: self._follow(each, depth))

    def _follow(self, reference: Reference, depth: int) -> Value:
        found = self._find(reference.name)
        if found is UNKNOWN and reference.name in self.definitions:
            return reference
        if found == reference:
            return reference
        return self.resolve(found, depth + 1)

    def _find_uncached(self, name: str) -> Value:
        """Return the value of a name; a reference to it if no other value is known."""
        module, rest = self._split(name)
        if module is None or not rest:
            return Reference(name)
        for used in range(len(rest), 0, -1):
            key = ".".join(rest[:used])
            if key in module.constants:
                found = module.constants[key]
                if found == Reference(f"{module.name}.{key}"):
                    return Reference(name)
                for part in rest[used:]:
                    found = part_of(found, part)
                return found
        return self._inherited(module, rest, name)

    def _inherited(self, module: Module, rest: list[str], name: str) -> Value:
        """Return a reference to a name, in the base class if its class lacks it."""
        if len(rest) > 1 and rest[0] in module.bases and name not in self.definitions:
            for base in module.bases[rest[0]]:
                if type(base) is Reference and base.name != f"{module.name}.{rest[0]}":
                    return Reference(".".join([base.name, *rest[1:]]))
        return Reference(name)

    def _split(self, name: str) -> tuple[Module | None, list[str]]:
        """Return the module of a name, or None, and the rest of the name."""
        parts = name.split(".")
        for used in range(len(parts), 0, -1):
            prefix = ".".join(parts[:used])
            module = self.modules.get(prefix)
            if module is None:
                module = self._load(prefix)
                if module is not None:
                    self._add(prefix, module)
            if module is not None:
                return module, parts[used:]
        return None, parts

    def class_bases(self, name: str) -> tuple[Value, ...]:
        """Return the base classes of a class of the project; () for other names."""
        module, rest = self._split(name)
        return () if module is None else module.bases.get(".".join(rest), ())

    def is_class(self, name: str) -> bool:
        """Return whether a name refers to a class of the project."""
        module, rest = self._split(name)
        return module is not None and ".".join(rest) in module.bases

    def site_of(self, call: Value, path: str = "", line: int = 0) -> Site | None:
        """Return the site that a call makes, after `sites` has yielded all.

        Args:
            call: A call whose references have been resolved.
            path: The path of the file in which it is used.
            line: The line in which it is used; of several equal calls, the last one up
                to this line is chosen, or else the first one.

        Returns:
            The site; None if the call makes none.
        """
        sites = self._made.get(call, []) if type(call) is Call else []
        near = [each for each in sites if each.path == path and each.line <= line]
        found = near[-1:] or sites[:1]
        return found[0] if found else None

    def call_of(self, site: Site) -> Call | None:
        """Return the call that makes a site, after `sites` has yielded it.

        Returns:
            The call, whose references have been resolved; None for a loop.
        """
        found = self._calls.get(id(site))
        return None if found is None else found[1]

    def read_call(self, call: Value) -> tuple[str, Behavior] | None:
        """Return a call's library and behavior; None if there is none to report."""
        for _ in range(_DEPTH):
            if type(call) is not Call:
                return None
            found = behavior_of(call)
            if found is not None:
                return found
            function = call.function
            if type(function) is Call and function.function == _PARTIAL:
                # Later arguments replace earlier ones.
                target, *given = function.positional or (UNKNOWN,)
                named = (*function.named, *call.named)
                call = Call(target, (*given, *call.positional), named)
                continue
            if type(function) is not Reference:
                return None
            if function.last == "retry_with":
                call = self._changed(function, call)
                continue
            bases = self.class_bases(function.name)
            if not bases:
                return None
            # A subclass may have other arguments.
            base = self.resolve(bases[0])
            call = Call(base, (UNKNOWN,), (*call.named, ("", UNKNOWN)))
        return None

    def _changed(self, function: Reference, call: Call) -> Value:
        """Return the call that decorates a function, changed by ``retry_with(...)``."""
        definition = self.definitions.get(function.name.rpartition(".")[0])
        for value, *_ in () if definition is None else definition.decorators:
            decorator = self.resolve(value)
            if type(decorator) is Call and self.read_call(decorator) is not None:
                named = (*decorator.named, *call.named)
                return Call(decorator.function, decorator.positional, named)
        return Call(_OF_TENACITY, call.positional, (*call.named, ("", UNKNOWN)))

    def sites(self) -> Iterator[Site]:
        """Yield all sites of the project, by file and line."""
        targets = self._targets()
        for module in self.sources:
            found = [*self._sites_of(module, targets)]
            yield from sorted(found, key=lambda each: (each.line, each.column))

    def _sites_of(
        self, module: Module, targets: dict[tuple[str, int, int], list[str]]
    ) -> Iterator[Site]:
        for candidate in module.candidates:
            site = self._site(module, candidate, targets)
            if site is not None:
                yield site
        for definition in module.definitions:
            for value, line, end_line, column in definition.decorators:
                if type(value) is Call:
                    continue
                resolved = self.resolve(value)
                if type(resolved) is Reference:
                    # A decorator without arguments.
                    found = self.read_call(Call(resolved))
                    if found is not None and not found[1].layer:
                        site = self._make(
                            module,
                            (line, end_line, column),
                            found,
                            definition.name,
                            (definition.name,),
                        )
                        self._calls[id(site)] = site, Call(resolved)
                        yield site
        for loop in self._loops_of(module):
            behavior = Behavior(
                _number(self.resolve(loop.calls)),
                _number(self.resolve(loop.elapsed)),
                loop.delays,
                self._retried(loop),
                results=loop.results,
                ending=loop.ending,
                swallows=loop.swallows,
                hint=loop.hint or None,
                some_at_once=loop.some_at_once,
                usual=_number(self.resolve(loop.usual)),
                plain=loop.plain,
            )
            yield Site(
                module.path,
                loop.line,
                loop.end_line,
                loop.column,
                "loop",
                loop.function,
                behavior,
                (),
                loop.is_async,
                loop.blocking,
            )

    def _retried(self, loop: Loop) -> tuple[str, ...] | None:
        """Return the names of the errors that a loop retries; None if unknown."""
        variables = {x: error_names(self.resolve(value)) for x, value in loop.variables}
        if not any(variables.values()):
            return loop.retried
        names = [each for x in loop.retried or () for each in variables.get(x) or [x]]
        return tuple(dict.fromkeys(names))

    def _loops_of(self, module: Module) -> Sequence[Loop]:
        """Return a module's loops, with delays from functions of other modules."""
        called: dict[str, FunctionNode] = {}
        others: dict[str, list[FunctionNode]] = {}
        asked = {
            (*x, each.delays.jitter is None)
            for each in module.loops
            for x in each.elsewhere
        }
        for name, value, delays in asked:
            function = self.resolve(Reference(called_name(self.resolve(value))))
            if type(function) is not Reference or function.name not in self.definitions:
                continue
            home, _ = self._split(function.name)
            line = self.definitions[function.name].line
            path = "" if home is None else home.path
            for each in self._functions_in(path):
                if each.lineno == line and (
                    always_raises(each) or (delays and may_contain_delays(each))
                ):
                    called[name] = each
                    others[path] = self._functions_in(path)
        if not called:
            return module.loops
        borrowed = Borrowed(called, [x for each in others.values() for x in each])
        again = self._read_again(module.path, borrowed)
        return module.loops if again is None else again.loops

    def _site(
        self,
        module: Module,
        candidate: Candidate,
        targets: dict[tuple[str, int, int], list[str]],
    ) -> Site | None:
        if not self._may_retry(candidate.call):
            return None
        call = self.resolve(candidate.call)
        key = (module.path, candidate.line, candidate.column)
        functions = [*targets.get(key, ())]
        if not functions:
            functions += self._decorated(call, module.name)
        if type(call) is Call and call.function == _RETRY_OF_TASK:
            # It begins the whole task again.
            functions.append(candidate.function)
            call = self._within_task(call, candidate.function)
        found = self.read_call(call)
        if found is None or found[1].layer:
            return None
        if call.function == _RETRY_OF_TASK:
            # The handler around it says which errors are retried.
            found = found[0], found[1].replace(retried=candidate.caught)
        where = functions[0] if functions else candidate.function
        place = (candidate.line, candidate.end_line, candidate.column)
        site = self._make(module, place, found, where, tuple(dict.fromkeys(functions)))
        if candidate.iterated and site.is_async:
            # The loop sleeps, and no other task runs.
            waits = found[1].delays.shape != "none"
            site = site.replace(blocking=site.line if waits else 0)
        self._made.setdefault(call, []).append(site)
        self._calls[id(site)] = site, call
        return site

    def _may_retry(self, call: Call) -> bool:
        """Return whether a call may use a retry library, before all of it is read."""
        function = self.resolve(call.function)
        if type(function) is not Reference or function.library in LIBRARIES:
            return True
        if function.last == "retry_with" or self.class_bases(function.name):
            return True
        return any(name in BY_KEYWORD for name, _ in call.named)

    def _within_task(self, call: Call, function: str) -> Call:
        """Return a call of ``self.retry`` with the settings of its task's decorator."""
        definition = self.definitions.get(function)
        if definition is None:
            return call
        for value, *_ in definition.decorators:
            decorator = self.resolve(value)
            if type(decorator) is Call:
                call = within_task(call, decorator)
        if not definition.decorators:
            # A function that gets the task; what its decorator says is not known.
            call = within_task(call, _ANY_TASK)
        return call

    def _decorated(self, call: Value, module: str) -> Iterable[str]:
        """Return the functions that a named decorator decorates.

        Args:
            call: The call that makes the decorator.
            module: The module in which the call stands.
        """
        if self._named is None:
            self._named = {}
            for definition in [*self.definitions.values()]:
                for value, *_ in definition.decorators:
                    for each in self._decorators_in(value):
                        self._named.setdefault(each, []).append(definition.name)
        return self._named.get((call, module), ()) if type(call) is Call else ()

    def _decorators_in(self, value: Value) -> Iterator[tuple[Call, str]]:
        """Yield the calls that make a named decorator, or the named policies in one.

        Yields:
            Each call, and the module in which it is made.
        """
        names = [value]
        if type(value) is Call and type(value.function) is Reference:
            of_policy = value.function.library == "retrykit"
            given = (*value.positional, *(each for _, each in value.named))
            names = [*given] if of_policy else []
        for name in names:
            resolved = self.resolve(name)
            if type(name) is Reference and type(resolved) is Call:
                yield resolved, self._origin(name)

    def _origin(self, name: Reference) -> str:
        """Return the module in which a name gets its value; "" if not known."""
        for _ in range(_DEPTH):
            found = self._find(name.name)
            if type(found) is not Reference or found == name:
                break
            name = found
        module, _ = self._split(name.name)
        return "" if module is None else module.name

    def _make(
        self,
        module: Module,
        place: tuple[int, int, int],
        found: tuple[str, Behavior],
        function: str,
        functions: tuple[str, ...],
    ) -> Site:
        library, behavior = found
        definition = self.definitions.get(function)
        is_async = definition is not None and definition.is_async
        line, end_line, column = place
        return Site(
            module.path,
            line,
            end_line,
            column,
            library,
            function,
            behavior,
            functions,
            is_async,
            0,
        )

    def _targets(self) -> dict[tuple[str, int, int], list[str]]:
        """Return the decorated functions, keyed by the place of each decorator."""
        found: dict[tuple[str, int, int], list[str]] = {}
        for module in self.sources:
            for definition in module.definitions:
                for _, line, _, column in definition.decorators:
                    found.setdefault((module.path, line, column), []).append(
                        definition.name
                    )
        return found


def _number(value: Value) -> float | None:
    return float(value) if type(value) in (int, float) else None
