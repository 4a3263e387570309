"""What a lint looks at: the policies that its targets hold, and where."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import Progress

from retrykit._internal.validation import invalid_setting
from retrykit.analysis.lint import Discovery, Found, ImportFailure, discover
from retrykit.cli.policy_argument import chosen, file_of, is_policy, names_of
from retrykit.cli.terminal import progress
from retrykit.errors import ConfigError

__all__ = ["looked_at"]


def looked_at(targets: Sequence[str], flags: Mapping[str, Any]) -> Discovery:
    """Return the policies of some targets, and what of them cannot be read.

    Args:
        targets: Policies, modules and paths; none is the policy of the flags.
        flags: What `policy_flags` gave; they change the policies that are named,
            not those that are found in code.

    Raises:
        ConfigError: There is no such target.
    """
    looked = [
        _named(target, flags) if target is None or is_policy(target) else _found(target)
        for target in targets or (None,)
    ]
    return Discovery(
        tuple(found for each in looked for found in each.found),
        tuple(unread for each in looked for unread in each.unread),
    )


def _found(target: str) -> Discovery:
    if not target:
        raise invalid_setting("TARGET", "a policy, a module or a path", target)
    with progress() as bar:
        return discover(target, progress=_advancing(bar))


def _named(target: str | None, flags: Mapping[str, Any]) -> Discovery:
    file = target and file_of(target)
    if not file or target is None:
        meant = chosen([] if target is None else [target], flags)
        found = (Found("", name, meant[name], None, None) for name in meant)
        return Discovery(tuple(found), ())
    # One by one, since one of them may have a fault.
    names = names_of(file) if file == target else []
    texts = [f"{file}:{name}" for name in names] or [target]
    looked = [_kept(text, file, flags) for text in texts]
    return Discovery(
        tuple(each for each in looked if isinstance(each, Found)),
        tuple(each for each in looked if isinstance(each, ImportFailure)),
    )


def _kept(text: str, file: str, flags: Mapping[str, Any]) -> Found | ImportFailure:
    """Return a policy of a file, or what is wrong with it."""
    path = Path(file).absolute()
    try:
        [(name, policy)] = chosen([text], flags).items()
    except ConfigError as error:
        name = text.removeprefix(f"{file}:")
        reason = str(error).removeprefix(f"{file}, policy {name!r}: ")
        return ImportFailure(name, path, None, reason)
    return Found("", name, policy, path, None)


def _advancing(bar: Progress) -> Callable[[str, int], None]:
    task = bar.add_task("importing", total=None)

    def advance(_module: str, modules: int) -> None:
        bar.update(task, total=modules, advance=1)

    return advance
