"""Notes that retrykit adds to errors."""

__all__ = ["add_note_once"]


def add_note_once(error: BaseException, text: str) -> None:
    """Add a note of retrykit's to the error, once."""
    # One error object that is raised again and again must not collect notes.
    start = f"retrykit: {text.split(maxsplit=1)[0]} "
    notes = vars(error).get("__notes__")
    notes = notes if isinstance(notes, list | tuple) else ()
    kept = [x for x in notes if not (isinstance(x, str) and x.startswith(start))]
    vars(error)["__notes__"] = [*kept, f"retrykit: {text}"]
