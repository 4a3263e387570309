/*
 * What may be typed for each part of a policy, and where its slider stops.
 *
 * The rules are those of retrykit.schedules and retrykit.policy.policy, and what
 * breaks one is told in their words. Pure.
 */

class Refused extends Error {}

function refuse(name, rule, got, wayOut = "") {
  throw new Refused(`${name} must be ${rule}, got ${got}${wayOut && `; ${wayOut}`}`);
}

const SECONDS_WAY_OUT =
  'give seconds as a number, a timedelta, or text such as "1h30m"';
const TEXT_RULE = 'a duration such as "12.5s", "500ms" or "1h30m"';
const TEXT_WAY_OUT = "write the unit (us, ms, s, m, h, d, w)";

/** Return the number that a text is, and what Python would print of it. */
function literal(text) {
  const typed = text.trim();
  if (/^[+-]?[0-9]+$/.test(typed))
    return {
      value: Number(typed),
      got: String(BigInt(typed.replace("+", ""))),
      whole: true,
    };
  if (/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i.test(typed)) {
    return { value: Number(typed), got: float(Number(typed)) };
  }
  return { value: NaN, got: quoted(typed) };
}

function within(name, { value, got }, atLeast = 0, atMost = Infinity, wayOut = "") {
  const top = atMost < Infinity ? ` and <= ${general(atMost)}` : "";
  const inside = atLeast <= value && value <= Math.min(atMost, LONGEST);
  return inside
    ? value
    : refuse(name, `a finite number >= ${general(atLeast)}${top}`, got, wayOut);
}

function seconds(name, text) {
  const found = literal(text);
  if (!Number.isNaN(found.value))
    return within(name, found, 0, Infinity, SECONDS_WAY_OUT);
  const value = parsed(text);
  if (value === null) refuse(name, TEXT_RULE, found.got, TEXT_WAY_OUT);
  return value < Infinity ? value : refuse(name, "a finite duration >= 0", found.got);
}

function* between(from, to, step) {
  for (let place = Math.round(from / step); place * step < to + step / 2; place++) {
    yield Number((place * step).toFixed(6));
  }
}

// Lengths that people write, from a millisecond to four weeks.
const LENGTHS = [
  ...[0.001, 0.01, 0.1, 1, 10]
    .flatMap((x) =>
      [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7.5, 8].map((y) => Number((x * y).toPrecision(2))),
    )
    .filter((x) => x < 60),
  ...[1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 45, 50].map(
    (x) => x * 60,
  ),
  ...[1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18].map((x) => x * 3600),
  ...[1, 1.5, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28].map((x) => x * 86400),
];
const GROWTHS = [
  ...between(1, 2, 0.05),
  ...between(2.1, 3, 0.1),
  ...between(3.5, 10, 0.5),
];
const COUNTS = [...between(0, 40, 1), ...between(45, 100, 5), ...between(125, 500, 25)];

function duration(read = seconds, steps = [0, ...LENGTHS]) {
  return { read, steps, unit: "s", show: shortest, tell: readable, python: float };
}

function number(read, steps) {
  return { read, steps, unit: "", show: shortest, tell: shortest, python: float };
}

function count(atLeast, wayOut = "") {
  const read = (name, text) => {
    const { value, got, whole } = literal(text);
    const largest = Number.MAX_SAFE_INTEGER;
    const top = whole && value > largest ? ` and <= ${largest}` : "";
    return whole && value >= atLeast && value <= largest
      ? value
      : refuse(name, `an integer >= ${atLeast}${top}`, got, wayOut);
  };
  const steps = COUNTS.filter((x) => x >= atLeast);
  return { read, steps, unit: "", show: wholly, tell: wholly, python: wholly };
}

function shortest(x) {
  return float(x).replace(/\.0$/, "");
}

function wholly(x) {
  return String(BigInt(x));
}

function atLeast(least) {
  return (name, text) => within(name, literal(text), least);
}

function upToOne(name, text) {
  return within(name, literal(text), 0, 1);
}

function belowOne(name, text) {
  return upToOne(name, text) < 1
    ? literal(text).value
    : refuse(name, "a number >= 0 and < 1", literal(text).got);
}

function positive(name, text) {
  return seconds(name, text) || refuse(name, "a duration > 0", literal(text).got);
}

/** Google's intervals: read as durations, then held to bounds as numbers. */
function milliseconds(name, text) {
  const value = seconds(name, text);
  return name === "max_interval"
    ? value
    : within(name, { value, got: float(value) }, 0.001);
}

function listed(_name, text) {
  const delays = text.trim() ? text.trim().split(/\s*[,;]\s*|\s+/) : [];
  return delays.map((delay, place) => seconds(`schedule[${place}]`, delay));
}

const LIST = {
  read: listed,
  unit: "s",
  show: (delays) => delays.map(shortest).join(", "),
  python: (delays) => `[${delays.map(float).join(", ")}]`,
};

/** The parts of each kind that are no schedules, in the order of Python. */
const PARTS = {
  constant: { wait: duration() },
  linear: { step: duration() },
  exponential: { first: duration(), factor: number(atLeast(1), GROWTHS) },
  polynomial: {
    exponent: number(atLeast(0), [...between(0, 8, 0.25)]),
    first: duration(),
  },
  fibonacci: { first: duration() },
  sequence: { delays: LIST },
  decorrelated: { first: duration(), factor: number(atLeast(1), GROWTHS) },
  google_interval: {
    initial_interval: duration(milliseconds, LENGTHS),
    randomization_factor: number(belowOne, [...between(0, 0.95, 0.05)]),
    multiplier: number(atLeast(1), GROWTHS),
    max_interval: duration(
      milliseconds,
      LENGTHS.filter((x) => x < 2147483),
    ),
  },
  polly_interval: { median_first_retry_delay: duration() },
  cap: { limit: duration() },
  at_least: { limit: duration() },
  round_down: { unit: duration(positive, LENGTHS) },
  scale: {
    factor: number(atLeast(0), [...between(0, 2, 0.05), ...between(2.5, 10, 0.5)]),
  },
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

/** The settings of a policy that are numbers, and what each attempt takes. */
const SETTINGS = {
  max_attempts: count(1, "the first call counts; None is unlimited"),
  max_elapsed: duration(),
  attempt: duration(),
};

const LARGEST_INTERVAL = (2 ** 31 - 1) / 1000;

/** Check what the parts of a schedule must be together. */
function agree(schedule) {
  for (const part of Object.values(schedule)) {
    if (part?.kind) agree(part);
  }
  if (schedule.kind === "google_interval") {
    const { max_interval: value, initial_interval: least } = schedule;
    const wayOut =
      "no shorter than initial_interval, no longer than the original can hold";
    within(
      "max_interval",
      { value, got: float(value) },
      least,
      LARGEST_INTERVAL,
      wayOut,
    );
  }
  if (schedule.kind === "then" && isEndless(schedule.of)) {
    const rule = "a schedule that ends, where another follows with .then()";
    refuse("schedule", rule, expression(schedule.of), "give it a length with .take(n)");
  }
}

/** Return whether a schedule has a delay for every retry, by what it is made of. */
function isEndless(s) {
  switch (s.kind) {
    case "take":
    case "within":
    case "sequence":
      return false;
    case "then":
      return isEndless(s.other);
    case "switch":
      return bounds(s, s.after + 1) !== null && isEndless(s.to);
    case "sum":
    case "intersection":
      return isEndless(s.left) && isEndless(s.right);
    case "union":
      return isEndless(s.left) || isEndless(s.right);
    default:
      return !s.of || isEndless(s.of);
  }
}
