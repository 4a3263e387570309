"""Runs an example of the page "Try it", for the build of the site and in a browser.

An example is a program, or a command of `retrykit`. The build passes it as stdin.
"""

import asyncio
import os
import runpy
import shlex
import sys
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

__all__ = ["run"]

_FILE: Final = "example.py"


def run(source: str) -> tuple[bool, str]:
    """Run an example in the current folder, and print the traceback of its error.

    Returns:
        Whether it succeeded, and the HTML page that it wrote, or an empty string.
    """
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    # So that both streams keep their order.
    sys.stdout.reconfigure(line_buffering=True)
    if sys.platform == "emscripten":
        _leave_event_loop()
    for page in Path().glob("*.html"):
        page.unlink()
    succeeded = _run_command(source) if _is_command(source) else _run_program(source)
    return succeeded, "".join(each.read_text("utf-8") for each in Path().glob("*.html"))


def _is_command(source: str) -> bool:
    return source.startswith("retrykit ")


def _run_command(line: str) -> bool:
    from retrykit._cli import main  # noqa: PLC0415  only commands need it

    return main(shlex.split(line)[1:]) == 0


def _run_program(source: str) -> bool:
    Path(_FILE).write_text(source, "utf-8")
    try:
        runpy.run_path(_FILE, run_name="__main__")
    except BaseException as error:  # noqa: BLE001  Python would print any
        _print_error(error)
        return False
    return True


def _print_error(error: BaseException) -> None:
    """Print an error with the traceback that Python would print."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != _FILE:
        frames = frames.tb_next
    traceback.print_exception(error.with_traceback(frames))


def _leave_event_loop() -> None:
    """Let programs begin without an event loop, although a browser is always in one."""
    from pyodide.ffi import can_run_sync  # noqa: PLC0415  only in a browser

    browser = asyncio.get_event_loop()

    def run_coroutine(main: Coroutine[Any, Any, Any], **_: Any) -> Any:
        if not can_run_sync():
            main.close()
            msg = "this browser cannot wait for coroutines; Chromium can"
            raise RuntimeError(msg)
        asyncio._set_running_loop(browser)  # noqa: SLF001  no public function does it
        try:
            return browser.run_until_complete(main)
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001

    asyncio.run = run_coroutine
    asyncio._set_running_loop(None)  # noqa: SLF001


if __name__ == "__main__":
    sys.exit(not run(sys.stdin.read())[0])
