"""Numbered drawings of sequences, as SVG.

Each party has a vertical line, and each message is an arrow between two of them. Time
runs down. The picture is narrow enough to be read on a phone.
"""

from html import escape
from typing import Final

from retrykit._internal.durations import duration_in_words

from .sequences import Sequence, Step

__all__ = ["draw_sequence"]

_WIDTH: Final = 480
_SHOWN_WIDTH: Final = 580
_TIMES: Final = 54
"""The width of the column of times, on the left."""
_HEAD: Final = 44
_ROW: Final = 33
_PAUSE: Final = 8
_LETTER: Final = 6.3
"""The usual width of a letter of 12 pixels."""

# Colors that `_site.drawing.in_dark` has for dark pages, too.
_COLORS: Final = {
    "call": "#0072b2",
    "result": "#009e73",
    "error": "#d55e00",
    "cancel": "#d55e00",
    "note": "#dddddd",
}
_DASHED: Final = {"result", "error"}


def draw_sequence(sequence: Sequence) -> str:
    """Return the SVG of a sequence."""
    xs = {name: _x(i, len(sequence.parties)) for i, name in enumerate(sequence.parties)}
    rows, y, number, before = [], _HEAD + 30.0, 0, -1.0
    for step in sequence.steps:
        if step.time != before:
            y += _PAUSE
            rows.append(_text(4, y + 4, duration_in_words(step.time), "start"))
            before = step.time
        if step.kind == "note":
            rows.append(_note(step, xs[step.source], y))
        else:
            number += 1
            rows.append(_arrow(step, xs[step.source], xs[step.target], y, number))
        y += _ROW
    bottom = y - _ROW / 2
    heads = [_head(name, x, bottom) for name, x in xs.items()]
    height = round(bottom + 4)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SHOWN_WIDTH}" '
        f'height="{height * _SHOWN_WIDTH / _WIDTH:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'
        f' font-size="12">{"".join([*heads, *rows])}</svg>\n'
    )


def _x(index: int, parties: int) -> float:
    return _TIMES + (_WIDTH - _TIMES) * (index + 0.5) / parties


def _head(name: str, x: float, bottom: float) -> str:
    """Return the box of a party, and its line down the picture."""
    width = len(name) * 7 + 16
    return (
        f'<path d="M{x:.1f} {_HEAD}V{bottom:.1f}" stroke="#cccccc"/>'
        f'<rect x="{x - width / 2:.1f}" y="12" width="{width}" height="28" rx="5" '
        f'fill="#ffffff" stroke="#cccccc"/>'
        + _text(x, 30, name, "middle", ' font-weight="600"')
    )


def _arrow(step: Step, start: float, end: float, y: float, number: int) -> str:
    """Return a message: its number, its arrow, and its text above that."""
    color = _COLORS[step.kind]
    ahead = 1 if end > start else -1
    dashes = ' stroke-dasharray="5 4"' if step.kind in _DASHED else ""
    middle = (start + end) / 2 + ahead * 4
    return (
        f'<path d="M{start:.1f} {y:.1f}H{end - ahead * 7:.1f}" stroke="{color}" '
        f'stroke-width="1.5"{dashes}/>'
        f'<path d="M{end:.1f} {y:.1f}l{-ahead * 9} -4.5v9z" fill="{color}"/>'
        f'<circle cx="{start:.1f}" cy="{y:.1f}" r="8.5" fill="{color}"/>'
        + _text(start, y + 3.6, str(number), "middle", ' font-size="10" fill="#ffffff"')
        + _text(middle, y - 6, step.text, "middle", _HALO)
    )


# Texts stay legible where they cross the line of a party.
_HALO: Final = ' stroke="#ffffff" stroke-width="4" paint-order="stroke"'


def _note(step: Step, x: float, y: float) -> str:
    """Return a note in a box on the line of its party."""
    width = len(step.text) * _LETTER + 14
    left = min(max(x - width / 2, _TIMES), _WIDTH - width - 2)
    return (
        f'<rect x="{left:.1f}" y="{y - 12:.1f}" width="{width:.1f}" height="22" '
        f'rx="4" fill="{_COLORS["note"]}"/>'
        + _text(left + width / 2, y + 3.5, step.text, "middle")
    )


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
        f"{escape(text)}</text>"
    )
