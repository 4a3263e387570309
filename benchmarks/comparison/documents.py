"""Answers of libraries of other languages, as their documents and sources give them."""

from benchmarks.comparison.claims import NO, YES, Answer, partly

__all__ = ["DOCUMENTS"]

_BY_HAND = partly("your function reads it")
_SCHEDULER = partly("a scheduler of your own, for futures")

DOCUMENTS: dict[str, dict[str, Answer]] = {
    "Polly 8": {
        "calls": YES,
        "jitter": partly("in the handler of .NET"),
        "limit": YES,
        "deadline": partly("a timeout around it"),
        "attempt_timeout": partly("by a token that the function heeds"),
        "original_error": YES,
        "retry_after": partly("in the handler of .NET"),
        "budget": NO,
        "breaker": YES,
        "hedging": YES,
        "rate_limit": YES,
        "concurrency": YES,
        "nested": NO,
        "testing": YES,
        "preview": partly("lists its settings"),
        "config": YES,
        "durable": NO,
        "metrics": YES,
    },
    "resilience4j 2": {
        "calls": YES,
        "jitter": NO,
        "limit": YES,
        "deadline": partly("a time limiter around it"),
        "attempt_timeout": YES,
        "original_error": YES,
        "retry_after": _BY_HAND,
        "budget": NO,
        "breaker": YES,
        "hedging": partly("a module without documents"),
        "rate_limit": YES,
        "concurrency": YES,
        "nested": NO,
        "testing": _SCHEDULER,
        "preview": NO,
        "config": YES,
        "durable": NO,
        "metrics": YES,
    },
    "Failsafe 3": {
        "calls": partly("functions and futures"),
        "jitter": NO,
        "limit": YES,
        "deadline": YES,
        "attempt_timeout": partly("futures"),
        "original_error": partly("checked ones are wrapped"),
        "retry_after": _BY_HAND,
        "budget": NO,
        "breaker": YES,
        "hedging": NO,
        "rate_limit": YES,
        "concurrency": YES,
        "nested": NO,
        "testing": _SCHEDULER,
        "preview": NO,
        "config": NO,
        "durable": NO,
        "metrics": partly("events"),
    },
}
"""The answers by claim, of each library by its name; the page has their addresses."""
