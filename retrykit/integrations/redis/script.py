"""The Lua script that updates the tokens of a key atomically, and its reply."""

__all__ = ["SCRIPT", "parse_reply"]

# An absent key is a full bucket, and a full bucket needs no key. A mere reading writes
# nothing, so that a gauge may read from a replica and does not keep the key alive.
SCRIPT = """\
local capacity, change = tonumber(ARGV[1]), tonumber(ARGV[2])
local cost, keep = tonumber(ARGV[3]), ARGV[4]
local held = redis.call('GET', KEYS[1])
if held and not string.find(held, '^%d+$') then
    return redis.error_reply('WRONGTYPE the key holds no number of tokens')
end
local left = held and tonumber(held) or capacity
left = math.min(math.max(left + change, 0), capacity)
local granted = cost <= left
if granted then
    left = left - cost
end
if change ~= 0 or cost ~= 0 then
    if left < capacity then
        redis.call('SET', KEYS[1], left, 'PX', keep)
    elseif held then
        redis.call('DEL', KEYS[1])
    end
end
return {granted and 1 or 0, left}
"""
"""Applies a change to the tokens of a key, then pays for a retry.

Its arguments are the key, and the capacity, the change, the cost and the expiry of the
key in milliseconds. It returns 1 or 0, for whether the retry is paid, and the remaining
tokens.
"""


def parse_reply(reply: object) -> tuple[int, int]:
    """Parse the reply of the script.

    >>> parse_reply([1, 495])
    (1, 495)
    >>> parse_reply(b"OK")
    Traceback (most recent call last):
    ...
    ValueError: the script replied b'OK'

    Returns:
        1 or 0, for whether the retry is paid, and the remaining tokens.
    """
    match reply:
        case [int(granted), int(tokens)]:
            return granted, tokens
    msg = f"the script replied {reply!r}"
    raise ValueError(msg)
