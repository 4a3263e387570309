/*
 * The delays that a call draws from a schedule, as the method `delay` of
 * retrykit.schedules. Pure. `random()` returns the next draw of a retry.
 */

/** The delays of the kinds that neither map, spread nor combine others. */
const DELAYS = {
  uniform: (s, _retry, _previous, random) => drawBetween(s.low, s.high, random),
  decorrelated: (s, retry, previous, random) => {
    const [low, high] = bounds(s, retry);
    const start = Math.max(previous ?? low, low);
    return drawBetween(low, Math.min(start * s.factor, high), random);
  },
  google_interval: (s, retry, _previous, random) => {
    const interval = googleInterval(s, retry);
    const delta = s.randomization_factor * interval;
    const drawn = Math.trunc(interval - delta + random() * (2 * delta + 1));
    const [low, high] = googleRange(s, interval);
    return Math.min(Math.max(drawn / 1000, low), high);
  },
  polly_interval: (s, retry, _previous, random) => {
    const time = (number, drawn) =>
      Math.pow(2, drawn) * Math.tanh(2 * Math.sqrt(number + drawn));
    const last = retry > 1 ? random.previous()() : 0;
    const was = retry > 1 ? time(retry - 2, last) / 2 : 0;
    const step = product(s.median_first_retry_delay / 1.4, 2, retry - 1);
    return saturate(Math.max(time(retry - 1, random()) - was, 0) * step);
  },
  take: (s, retry, ...rest) =>
    retry <= s.retries ? drawDelay(s.of, retry, ...rest) : null,
  within: (s, retry, ...rest) =>
    retry <= countFitting(s, retry) ? drawDelay(s.of, retry, ...rest) : null,
  then: (s, retry, previous, random) => {
    const later = retry - countDelays(s.of, retry);
    if (!later) return drawDelay(s.of, retry, previous, random);
    return drawDelay(s.other, later, later > 1 ? previous : null, random);
  },
  switch: (s, retry, ...rest) => {
    if (retry <= s.after) return drawDelay(s.of, retry, ...rest);
    const ended = s.after > 0 && bounds(s.of, s.after) === null;
    return ended ? null : drawDelay(s.to, retry, ...rest);
  },
};

/** Return the delay before a retry, in seconds, or null if the schedule has ended. */
function drawDelay(s, retry, previous, random) {
  const { map, range, join } = KINDS[s.kind];
  if (join) {
    const left = drawDelay(s.left, retry, previous, random);
    return join(left, drawDelay(s.right, retry, previous, random));
  }
  if (map || range) {
    const delay = drawDelay(s.of, retry, previous, random);
    if (delay === null) return null;
    return map ? map(s, delay) : drawBetween(...range(s, delay), random);
  }
  const own = DELAYS[s.kind];
  return own ? own(s, retry, previous, random) : fixedDelay(s, retry);
}

const FIXED = new WeakMap();

/** Return the delay of a schedule that does not draw, remembered. */
function fixedDelay(s, retry) {
  if (!FIXED.has(s)) FIXED.set(s, new Map());
  const known = FIXED.get(s);
  if (!known.has(retry)) known.set(retry, bounds(s, retry)?.[0] ?? null);
  return known.get(retry);
}

/** Return a delay drawn from a range, as `uniform_between`. */
function drawBetween(low, high, random) {
  return low + (high - low) * random();
}

/** Return a function of a retry, the previous delay and the draws of a call. */
function drawnDelays(schedule) {
  if (!isUniform(schedule))
    return (retry, previous, draws) =>
      drawDelay(schedule, retry, previous, draws.of(retry));
  const known = [];
  return (retry, _previous, draws) => {
    const range = (known[retry] ??= bounds(schedule, retry) ?? []);
    const [low, high] = range;
    if (low === high) return low ?? null;
    return low + (high - low) * draws.draw(retry, 1);
  };
}

/** Return whether each delay is drawn between its bounds, as `is_uniform`. */
function isUniform(s) {
  if (s.kind === "take" || s.kind === "within") return isUniform(s.of);
  return countRandom(s) === (KINDS[s.kind].range || s.kind === "uniform" ? 1 : 0);
}

/** Return how many parts of a schedule draw. */
function countRandom(s) {
  const draws =
    KINDS[s.kind].range ||
    ["uniform", "decorrelated", "google_interval", "polly_interval"].includes(s.kind);
  return Object.values(s)
    .filter((part) => part?.kind)
    .reduce((sum, part) => sum + countRandom(part), draws ? 1 : 0);
}
