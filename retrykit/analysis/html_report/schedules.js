/*
 * The bounds of the delay before a retry, as retrykit.schedules computes them. A
 * schedule is an object with its kind and its parts. Since Math.pow may differ from
 * Python's in the last bits, results agree to a relative error of 1e-12.
 */

const LONGEST = Number.MAX_VALUE;

/** Return [low, high] in seconds, or null if the schedule has ended. */
function bounds(schedule, retry) {
  return KINDS[schedule.kind](schedule, retry);
}

function fixed(delay) {
  return [delay, delay];
}

function saturate(delay) {
  return delay < LONGEST ? delay : LONGEST;
}

// Math.max(...numbers) fails for too many arguments.
function largest(numbers) {
  return numbers.reduce((a, b) => Math.max(a, b));
}

function smallest(numbers) {
  return numbers.reduce((a, b) => Math.min(a, b));
}

/** Return first * base ** exponent, at most the largest float. */
function product(first, base, exponent) {
  const power = powerOf(base, exponent);
  // Zero times infinity would be NaN.
  return power === Infinity ? first && LONGEST : saturate(first * power);
}

/** Return a power, of an integer exponent to the last bit, as Python does. */
function powerOf(base, exponent) {
  const power = Math.pow(base, exponent);
  if (!Number.isInteger(exponent) || exponent < 2 || exponent > 1100) return power;
  // By squaring sums of two floats, of twice the digits.
  let [square, result] = [[base, 0], [1, 0]];
  for (let left = exponent; left; left = Math.floor(left / 2)) {
    if (left % 2) result = multiply(result, square);
    if (left > 1) square = multiply(square, square);
  }
  // Halves of the largest floats overflow.
  return Number.isFinite(result[0]) ? result[0] : power;
}

/** Multiply sums of two floats; T. J. Dekker, Numerische Mathematik 18, 1971. */
function multiply([a, least], [b, other]) {
  const whole = a * b;
  const [high, low, above, below] = [...halves(a), ...halves(b)];
  const rest = high * above - whole + high * below + low * above + low * below;
  const error = rest + (a * other + least * b);
  const sum = whole + error;
  return [sum, error - (sum - whole)];
}

function halves(x) {
  const wide = 134217729 * x;
  const high = wide - (wide - x);
  return [high, x - high];
}

const FIBONACCI = [1n, 1n];

function fibonacci(retry) {
  // The next number would not fit a float.
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
  const high = Math.min(Math.ceil(interval + delta + 1) - 1, 2 ** 31 - 1);
  return [Math.trunc(interval - delta) / 1000, high / 1000];
}

function longestOfPolly(s, retry) {
  const high = 2 * Math.tanh(2 * Math.sqrt(retry));
  const low = retry > 1 ? Math.tanh(2 * Math.sqrt(retry - 2)) / 2 : 0;
  return saturate((high - low) * product(s.median_first_retry_delay / 1.4, 2, retry - 1));
}

/** Round to an integer, half to even, as Python does. */
function halfEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 ? below + 1 : below;
}

function mapBounds(map) {
  const mapped = (s, retry) => {
    const range = bounds(s.of, retry);
    return range && [map(s, range[0]), map(s, range[1])];
  };
  return Object.assign(mapped, { map });
}

function roundDown(delay, unit) {
  const steps = delay / unit;
  // Larger floats have no fractions of the unit.
  if (steps > 2 ** 53) return delay;
  // 0.3 / 0.1 is slightly below 3, but counts as 3.
  const nearest = halfEven(steps);
  const isWhole = Math.abs(steps - nearest) <= 1e-15 * Math.max(steps, nearest);
  return saturate((isWhole ? nearest : Math.floor(steps)) * unit);
}

function spreadBounds(range) {
  const spread = (s, retry) => {
    const whole = bounds(s.of, retry);
    return whole && [range(s, whole[0])[0], range(s, whole[1])[1]];
  };
  return Object.assign(spread, { range });
}

const FITTING = new WeakMap();

/** Return the number of delays that fit into .within(), at most *retry*. */
function countFitting(s, retry) {
  let [count, total, ended] = FITTING.get(s) || [0, 0, false];
  // A rounding error of the sum must not drop a delay that fits exactly.
  const allowed = saturate(s.total * (1 + 1e-12));
  while (count < retry && !ended) {
    const range = bounds(s.of, count + 1);
    ended = range === null || total + range[1] > allowed;
    if (!ended) [count, total] = [count + 1, total + range[1]];
  }
  FITTING.set(s, [count, total, ended]);
  return count;
}

/** Return the number of delays of a schedule, at most *retry*. */
function countDelays(schedule, retry) {
  let [low, high] = [0, retry];
  while (low < high) {
    const middle = Math.floor((low + high) / 2) + 1;
    if (bounds(schedule, middle) === null) high = middle - 1;
    else low = middle;
  }
  return low;
}

function combineBounds(join) {
  const combined = (s, retry) => {
    const left = bounds(s.left, retry) || [null, null];
    const right = bounds(s.right, retry) || [null, null];
    const [low, high] = [join(left[0], right[0]), join(left[1], right[1])];
    return low === null || high === null ? null : [low, high];
  };
  return Object.assign(combined, { join });
}

function whileBoth(join) {
  return (left, right) => (left === null || right === null ? null : join(left, right));
}
