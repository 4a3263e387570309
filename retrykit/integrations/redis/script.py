"""What Redis does with the tokens of a key, all of it at once.

It runs on the server. Who asks for it, and when, is not known here.
"""

__all__ = ["SCRIPT", "understood"]

# An absent key is a full bucket, and a full bucket needs no key. What is only
# read is not written, so that a gauge may ask a replica and keeps no key alive.
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
"""It pays for a retry, when what was gathered is added or taken.

It is given the key, and the capacity, the change, the cost, and for how many
milliseconds the key is kept; it returns whether the retry is paid for, as 1 or
0, and the tokens that are left.
"""


def understood(answer: object) -> tuple[int, int]:
    """Return what the script answered.

    >>> understood([1, 495])
    (1, 495)
    >>> understood(b"OK")
    Traceback (most recent call last):
    ...
    ValueError: a script answered with b'OK'

    Returns:
        Whether the retry is paid for, as 1 or 0, and the tokens that are left.

    Raises:
        ValueError: Something else than the script has answered.
    """
    match answer:
        case [int(granted), int(tokens)]:
            return granted, tokens
    msg = f"a script answered with {answer!r}"
    raise ValueError(msg)
