/* The kinds of schedules; each has a row in both tables. */

/** The bounds of the delay before a retry, or null. */
const KINDS = {
  constant: (s) => [s.wait, s.wait],
  linear: (s, retry) => fixed(linearDelay(s, retry)),
  exponential: (s, retry) => fixed(product(s.first, s.factor, retry - 1)),
  decay: (s, retry) => fixed(product(s.first, Math.E, -s.rate * (retry - 1))),
  polynomial: (s, retry) => fixed(product(s.first, retry, s.exponent)),
  fibonacci: (s, retry) => fixed(saturate(s.first * fibonacci(retry))),
  sequence: (s, retry) =>
    retry <= s.delays.length ? fixed(s.delays[retry - 1]) : null,
  uniform: (s) => [s.low, s.high],
  decorrelated: (s, retry) => [s.first, product(s.first, s.factor, retry)],
  google_interval: (s, retry) => googleRange(s, googleInterval(s, retry)),
  polly_interval: (s, retry) => [0, longestOfPolly(s, retry)],

  cap: mapBounds((s, delay) => (delay < s.limit ? delay : s.limit)),
  at_least: mapBounds((s, delay) => (delay > s.limit ? delay : s.limit)),
  round_down: mapBounds((s, delay) => roundDown(delay, s.unit)),
  scale: mapBounds((s, delay) => saturate(delay * s.factor)),

  full_jitter: spreadBounds((s, delay) => [0, delay]),
  equal_jitter: spreadBounds((s, delay) => [delay / 2, delay]),
  jitter: spreadBounds((s, delay) => [
    delay * (1 - s.factor),
    saturate(delay * (1 + s.factor)),
  ]),

  take: (s, retry) => (retry <= s.retries ? bounds(s.of, retry) : null),
  within: (s, retry) => (retry <= countFitting(s, retry) ? bounds(s.of, retry) : null),
  then: (s, retry) =>
    bounds(s.of, retry) || bounds(s.other, retry - countDelays(s.of, retry)),
  switch: (s, retry) => {
    if (retry <= s.after) return bounds(s.of, retry);
    const ended = s.after > 0 && bounds(s.of, s.after) === null;
    return ended ? null : bounds(s.to, retry);
  },

  sum: combineBounds(whileBoth((a, b) => saturate(a + b))),
  intersection: combineBounds(whileBoth(Math.max)),
  union: combineBounds((a, b) => {
    const going = [a, b].filter((delay) => delay !== null);
    return going.length ? Math.min(...going) : null;
  }),
};

function linearDelay({ step, first }, retry) {
  if (first === null) return saturate(step * retry);
  return Math.max(0, saturate(first + step * (retry - 1)));
}

/** The numbers of each kind of schedule, in the order of its Python arguments. */
const PARTS = {
  constant: { wait: duration() },
  linear: { step: duration(), first: duration() },
  exponential: { first: duration(), factor: number(atLeast(1), GROWTHS) },
  decay: { first: duration(), rate: number(atLeast(0), FACTORS) },
  polynomial: {
    exponent: number(atLeast(0), [...between(0, 8, 0.25)]),
    first: duration(),
  },
  fibonacci: { first: duration() },
  sequence: { delays: DELAY_LIST },
  uniform: { low: duration(), high: duration() },
  decorrelated: { first: duration(), factor: number(atLeast(1), GROWTHS) },
  google_interval: {
    initial_interval: duration(milliseconds, DURATIONS),
    randomization_factor: number(belowOne, [...between(0, 0.95, 0.05)]),
    multiplier: number(atLeast(1), GROWTHS),
    max_interval: duration(
      milliseconds,
      DURATIONS.filter((x) => x < 2147483),
    ),
  },
  polly_interval: { median_first_retry_delay: duration() },
  cap: { limit: duration() },
  at_least: { limit: duration() },
  round_down: { unit: duration(positive, DURATIONS) },
  scale: { factor: number(atLeast(0), FACTORS) },
  full_jitter: {},
  equal_jitter: {},
  jitter: { factor: number(upToOne, [...between(0, 1, 0.05)]) },
  take: { retries: count(0) },
  within: { total: duration() },
  then: {},
  switch: { after: count(0) },
  sum: {},
  intersection: {},
  union: {},
};
