/*
 * The bounds of the delay before a retry, as retrykit.schedules computes them. A
 * schedule is an object of its kind and its parts. Math.pow may differ from Python's
 * in the last bits: equal to a relative error of 1e-12.
 */

const LONGEST = Number.MAX_VALUE;

/** Return [low, high] in seconds, or null if the schedule has ended. */
function bounds(schedule, retry) {
  return KINDS[schedule.kind](schedule, retry);
}

function twice(delay) {
  return [delay, delay];
}

function saturated(delay) {
  return delay < LONGEST ? delay : LONGEST;
}

// Math.max(...numbers) fails beyond the limit of arguments.
function largest(numbers) {
  return numbers.reduce((a, b) => Math.max(a, b));
}

function smallest(numbers) {
  return numbers.reduce((a, b) => Math.min(a, b));
}

function product(first, base, exponent) {
  const power = Math.pow(base, exponent);
  // Zero times infinity would be NaN.
  return power === Infinity ? first && LONGEST : saturated(first * power);
}

const FIBONACCI = [1n, 1n];

function fibonacci(retry) {
  // Beyond the 1476th they overflow.
  const index = Math.min(retry, 1476);
  while (FIBONACCI.length < index) FIBONACCI.push(FIBONACCI.at(-1) + FIBONACCI.at(-2));
  return Number(FIBONACCI[index - 1]);
}

function googleInterval(s, retry) {
  let interval = halfEven(s.initial_interval * 1000);
  const maximum = halfEven(s.max_interval * 1000);
  for (let step = 1; step < retry; step++) {
    if (interval >= maximum / s.multiplier) return maximum;
    const before = interval;
    interval = Math.trunc(interval * s.multiplier);
    if (interval === before) break;
  }
  return interval;
}

function googleRange(s, interval) {
  const delta = s.randomization_factor * interval;
  const high = Math.ceil(interval + delta + 1) - 1;
  return [Math.trunc(interval - delta) / 1000, high / 1000];
}

function longestOfPolly(s, retry) {
  const at = 2 * Math.tanh(2 * Math.sqrt(retry));
  const was = retry > 1 ? Math.tanh(2 * Math.sqrt(retry - 2)) / 2 : 0;
  return saturated((at - was) * product(s.median_first_retry_delay / 1.4, 2, retry - 1));
}

/** Round to an integer, half to even, as Python does. */
function halfEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 ? below + 1 : below;
}

function mapped(map) {
  return (s, retry) => {
    const range = bounds(s.of, retry);
    return range && [map(s, range[0]), map(s, range[1])];
  };
}

function roundedDown(delay, unit) {
  const steps = delay / unit;
  // Larger floats have no fractions of the unit.
  if (steps > 2 ** 53) return delay;
  // 0.3 / 0.1 is slightly below 3, but counts as 3.
  const nearest = halfEven(steps);
  const onIt = Math.abs(steps - nearest) <= 1e-15 * Math.max(steps, nearest);
  return saturated((onIt ? nearest : Math.floor(steps)) * unit);
}

function spread(range) {
  return (s, retry) => {
    const whole = bounds(s.of, retry);
    return whole && [range(s, whole[0])[0], range(s, whole[1])[1]];
  };
}

const FITTING = new WeakMap();

/** Return the number of delays that fit into .within(), at most *retry*. */
function fitting(s, retry) {
  let [number, spent, ended] = FITTING.get(s) || [0, 0, false];
  // Rounding of the sum must not lose a delay that fits exactly.
  const allowed = saturated(s.total * (1 + 1e-12));
  while (number < retry && !ended) {
    const range = bounds(s.of, number + 1);
    ended = range === null || spent + range[1] > allowed;
    if (!ended) [number, spent] = [number + 1, spent + range[1]];
  }
  FITTING.set(s, [number, spent, ended]);
  return number;
}

/** Return the number of delays of a schedule, at most *retry*. */
function length(schedule, retry) {
  let [has, less] = [0, retry];
  while (has < less) {
    const middle = Math.floor((has + less) / 2) + 1;
    if (bounds(schedule, middle) === null) less = middle - 1;
    else has = middle;
  }
  return has;
}

function joined(join) {
  return (s, retry) => {
    const left = bounds(s.left, retry) || [null, null];
    const right = bounds(s.right, retry) || [null, null];
    const [low, high] = [join(left[0], right[0]), join(left[1], right[1])];
    return low === null || high === null ? null : [low, high];
  };
}

function whileBoth(join) {
  return (left, right) => (left === null || right === null ? null : join(left, right));
}
