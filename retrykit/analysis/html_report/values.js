/*
 * Numbers and durations: parsed and formatted as in Python, and checked by the
 * rules and in the words of retrykit.schedules and retrykit.policy. Pure.
 */

/** Return the Python repr of a float: 1.0, 0.25, 1e+16. */
function float(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [digits, exponent] = x.toExponential().split("e");
  const power = Number(exponent);
  if (x !== 0 && (power < -4 || power >= 16)) return digits + powerOfTen(power);
  return Number.isInteger(x) ? `${x}.0` : String(x);
}

/** Format a number with at most so many digits, as Python's format "g" does. */
function general(x, digits = 6) {
  const [mantissa, exponent] = rounded(x, digits).split("e");
  const power = Number(exponent);
  if (power < -4 || power >= digits) return Number(mantissa) + powerOfTen(power);
  return String(Number(`${mantissa}e${exponent}`));
}

/** Round a number to so many digits, half to even. */
function rounded(x, digits) {
  // Enough digits to recognize a float exactly in the middle.
  const [all, exponent] = x.toExponential(60).split("e");
  const cut = all.slice(0, digits + 1);
  const middle = /^50*$/.test(all.slice(digits + 1));
  const even = "02468".includes(cut.at(-1));
  return middle && even && digits > 1 ? `${cut}e${exponent}` : x.toExponential(digits - 1);
}

function powerOfTen(power) {
  return `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Return the Python repr of a string. */
function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return mark + inside + mark;
}

// Durations that three digits would round up to the next unit use that unit.
const SMALL = [
  ["us", 1e-6, 0.9995e-3],
  ["ms", 1e-3, 0.9995],
  ["s", 1, 59.95],
];
const STEPS = [
  [1, 3600],
  [60, 86400],
  [3600, Infinity],
];
const LARGE = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** Format a duration for people, as retrykit._internal.durations.format_duration does. */
function readable(duration) {
  if (duration < 1e-9) return "0s";
  for (const [unit, size, end] of SMALL) {
    if (duration < end) return general(duration / size, 3) + unit;
  }
  // More digits would not be readable.
  if (duration >= 86400e6) return `${general(duration / 86400, 3)}d`;
  const rounded = STEPS.map(([step, end]) => [halfEven(duration / step) * step, end]);
  const [total] = rounded.find(([seconds, end]) => seconds < end);
  const units = LARGE.filter(([, size]) => size <= total);
  const [large, size] = units[0];
  const text = `${Math.floor(total / size)}${large}`;
  const rest = total % size;
  if (!rest || units.length === 1) return text;
  const [small, step] = units[1];
  return rest >= step ? `${text}${Math.floor(rest / step)}${small}` : text;
}

const PARTS_OF_SECONDS = { us: 1e6, ms: 1e3 };
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
const TERM = "([0-9]{1,15}(?:\\.[0-9]+)?)(us|ms|[smhdw])";
const SPACE = "[ \\t\\n\\r\\f\\v]*";

/** Parse a duration such as "1h30m" to seconds; null if it is none. */
function parsed(text) {
  if (!new RegExp(`^${SPACE}(?:${TERM}${SPACE})+$`).test(text)) return null;
  let total = 0;
  for (const [, digits, unit] of text.matchAll(new RegExp(TERM, "g"))) {
    const parts = PARTS_OF_SECONDS[unit];
    total += parts ? Number(digits) / parts : Number(digits) * SECONDS[unit];
  }
  return total;
}

class InvalidInput extends Error {}

function reject(name, rule, got, suggestion = "") {
  throw new InvalidInput(`${name} must be ${rule}, got ${got}${suggestion && `; ${suggestion}`}`);
}

const SECONDS_SUGGESTION =
  'give seconds as a number, a timedelta, or text such as "1h30m"';
const TEXT_RULE = 'a duration such as "12.5s", "500ms" or "1h30m"';
const TEXT_SUGGESTION = "write the unit (us, ms, s, m, h, d, w)";

/** Parse a number, and format it as Python would. */
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

function within(name, { value, got }, atLeast = 0, atMost = Infinity, suggestion = "") {
  const top = atMost < Infinity ? ` and <= ${general(atMost)}` : "";
  const inside = atLeast <= value && value <= Math.min(atMost, LONGEST);
  return inside
    ? value
    : reject(name, `a finite number >= ${general(atLeast)}${top}`, got, suggestion);
}

function seconds(name, text) {
  const found = literal(text);
  if (!Number.isNaN(found.value))
    return within(name, found, 0, Infinity, SECONDS_SUGGESTION);
  const value = parsed(text);
  if (value === null) reject(name, TEXT_RULE, found.got, TEXT_SUGGESTION);
  return value < Infinity ? value : reject(name, "a finite duration >= 0", found.got);
}

function* between(from, to, step) {
  for (let index = Math.round(from / step); index * step < to + step / 2; index++) {
    yield Number((index * step).toFixed(6));
  }
}

/** Return durations that people write, from a unit up to a limit. */
function durations(unit, end) {
  return [1, 10, 100, 1000, 10000]
    .flatMap((tens) => [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((x) => x * tens * unit))
    .map((x) => Number(x.toPrecision(4)))
    .filter((x) => x < end);
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const DURATIONS = [
  ...durations(0.001, MINUTE),
  ...durations(MINUTE, HOUR),
  ...durations(HOUR, DAY),
  ...durations(DAY, 29 * DAY),
];
const GROWTHS = [
  ...between(1, 2, 0.05),
  ...between(2.1, 3, 0.1),
  ...between(3.5, 10, 0.5),
];
const COUNTS = [...between(0, 40, 1), ...between(45, 100, 5), ...between(125, 500, 25)];

/**
 * A kind of input is {read, steps, unit, edit, format, python}: `read` parses and
 * checks text, `steps` are the stops of the slider, `edit` formats a value for its
 * field, `format` for people, and `python` as source.
 */
function duration(read = seconds, steps = [0, ...DURATIONS]) {
  return { read, steps, unit: "s", edit: shortest, format: readable, python: float };
}

function number(read, steps) {
  return { read, steps, unit: "", edit: shortest, format: shortest, python: float };
}

function count(atLeast, suggestion = "") {
  const read = (name, text) => {
    const { value, got, whole } = literal(text);
    const largest = Number.MAX_SAFE_INTEGER;
    const top = whole && value > largest ? ` and <= ${largest}` : "";
    return whole && value >= atLeast && value <= largest
      ? value
      : reject(name, `an integer >= ${atLeast}${top}`, got, suggestion);
  };
  const steps = COUNTS.filter((x) => x >= atLeast);
  return { read, steps, unit: "", edit: wholly, format: wholly, python: wholly };
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
    : reject(name, "a number >= 0 and < 1", literal(text).got);
}

function positive(name, text) {
  return seconds(name, text) || reject(name, "a duration > 0", literal(text).got);
}

/** Google's intervals: durations that are also checked as numbers. */
function milliseconds(name, text) {
  const value = seconds(name, text);
  return name === "max_interval"
    ? value
    : within(name, { value, got: float(value) }, 0.001);
}

function listed(_name, text) {
  const delays = text.trim() ? text.trim().split(/\s*[,;]\s*|\s+/) : [];
  return delays.map((delay, index) => seconds(`schedule[${index}]`, delay));
}

const LIST = {
  read: listed,
  unit: "s",
  edit: (delays) => delays.map(shortest).join(", "),
  python: (delays) => `[${delays.map(float).join(", ")}]`,
};

/** The numeric settings of a policy, and the duration of attempts. */
const SETTINGS = {
  max_attempts: count(1, "the first attempt counts; None is unlimited"),
  max_elapsed: duration(),
  attempt: duration(),
};

const LARGEST_INTERVAL = (2 ** 31 - 1) / 1000;

/** Check the rules between the numbers of a schedule. */
function agree(schedule) {
  for (const part of Object.values(schedule)) {
    if (part?.kind) agree(part);
  }
  if (schedule.kind === "google_interval") {
    const { max_interval: value, initial_interval: least } = schedule;
    const suggestion =
      "no shorter than initial_interval, no longer than 2**31 - 1 ms";
    within(
      "max_interval",
      { value, got: float(value) },
      least,
      LARGEST_INTERVAL,
      suggestion,
    );
  }
  if (schedule.kind === "then" && isEndless(schedule.of)) {
    const rule = "a schedule that ends, where another follows with .then()";
    reject("schedule", rule, expression(schedule.of), "give it a length with .take(n)");
  }
}

/** Return whether a schedule has a delay for every retry. */
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
