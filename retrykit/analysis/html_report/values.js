/*
 * Numbers and durations: parsed and formatted as in Python, with the rules and errors
 * of retrykit.schedules and retrykit.policy. Pure.
 */

/** Return the Python repr of a float: 1.0, 0.25, 1e+16. */
function floatRepr(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [digits, exponent] = x.toExponential().split("e");
  const power = Number(exponent);
  if (x !== 0 && (power < -4 || power >= 16)) return digits + formatExponent(power);
  return Number.isInteger(x) ? `${x}.0` : String(x);
}

/** Format a number like Python's format "g", with at most *digits* digits. */
function formatGeneral(x, digits = 6) {
  const [mantissa, exponent] = roundToDigits(x, digits).split("e");
  const power = Number(exponent);
  if (power < -4 || power >= digits) return Number(mantissa) + formatExponent(power);
  return String(Number(`${mantissa}e${exponent}`));
}

/** Round a number to *digits* digits, half to even, in exponential notation. */
function roundToDigits(x, digits) {
  // Enough digits to recognize a float exactly in the middle.
  const [all, exponent] = x.toExponential(60).split("e");
  const cut = all.slice(0, digits + 1);
  const middle = /^50*$/.test(all.slice(digits + 1));
  const even = "02468".includes(cut.at(-1));
  return middle && even && digits > 1 ? `${cut}e${exponent}` : x.toExponential(digits - 1);
}

function formatExponent(power) {
  return `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Return the Python repr of a string. */
function stringRepr(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return mark + inside + mark;
}

// Three digits just below these limits would round up to the next unit.
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
function formatDuration(duration) {
  // The step of a schedule whose delays fall.
  if (duration < 0) return `-${formatDuration(-duration)}`;
  if (duration < 1e-9) return "0s";
  for (const [unit, size, end] of SMALL) {
    if (duration < end) return formatGeneral(duration / size, 3) + unit;
  }
  // Exact days would be too long to read.
  if (duration >= 86400e6) return `${formatGeneral(duration / 86400, 3)}d`;
  const totals = STEPS.map(([step, end]) => [halfEven(duration / step) * step, end]);
  const [total] = totals.find(([value, end]) => value < end);
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
const NUMBER = "[0-9]{1,15}(?:\\.[0-9]+)?";
const SPACE = "[ \\t\\n\\r\\f\\v]*";
const UNITS =
  "microseconds?|usecs?|us|milliseconds?|msecs?|ms|minutes?|mins?|m|" +
  "seconds?|secs?|s|hours?|hrs?|h|days?|d|weeks?|w";
const TERM = `(${NUMBER})${SPACE}(${UNITS})`;
const ISO =
  `P(?=[0-9T])(?:${NUMBER}W)?(?:${NUMBER}D)?` +
  `(?:T(?=[0-9])(?:${NUMBER}H)?(?:${NUMBER}M)?(?:${NUMBER}S)?)?`;
const SHORT = { us: "us", use: "us", mic: "us", ms: "ms", mse: "ms", mil: "ms" };

/** Parse a duration such as "1h30m" or "PT0.5S" to seconds; null if it is invalid. */
function parseDuration(text) {
  const pattern = `^${SPACE}(?:(?:${TERM}${SPACE})+|${ISO}${SPACE})$`;
  if (!new RegExp(pattern).test(text)) return null;
  const terms = text.includes("P") ? text.replace("T", "").toLowerCase() : text;
  let total = 0;
  for (const [, digits, word] of terms.matchAll(new RegExp(TERM, "g"))) {
    const unit = SHORT[word.slice(0, 3)] ?? word[0];
    const parts = PARTS_OF_SECONDS[unit];
    total += parts ? Number(digits) / parts : Number(digits) * SECONDS[unit];
  }
  return total;
}

class InvalidInput extends Error {}

function reject(name, rule, got, suggestion = "") {
  throw new InvalidInput(`${name} must be ${rule}, got ${got}${suggestion && `; ${suggestion}`}`);
}

const TEXT_RULE = 'a duration such as "12.5s", "500ms" or "1h30m"';
const TEXT_SUGGESTION = "write the unit (us, ms, s, m, h, d, w)";

/** Parse a number: its value, NaN if invalid, and its repr in Python for errors. */
function parseNumber(text) {
  const typed = text.trim();
  if (/^[+-]?[0-9]+$/.test(typed))
    return {
      value: Number(typed),
      got: String(BigInt(typed.replace("+", ""))),
      isInteger: true,
    };
  if (/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i.test(typed)) {
    return { value: Number(typed), got: floatRepr(Number(typed)) };
  }
  return { value: NaN, got: stringRepr(typed) };
}

function checkNumber(
  name,
  { value, got },
  atLeast = 0,
  atMost = Infinity,
  suggestion = "",
) {
  const top = atMost < Infinity ? ` and <= ${formatGeneral(atMost)}` : "";
  const inside = atLeast <= value && value <= Math.min(atMost, LONGEST);
  return inside
    ? value
    : reject(name, `a finite number >= ${formatGeneral(atLeast)}${top}`, got, suggestion);
}

function readDuration(name, text) {
  const number = parseNumber(text);
  if (!Number.isNaN(number.value))
    return checkNumber(name, number);
  const value = parseDuration(text);
  if (value === null) reject(name, TEXT_RULE, number.got, TEXT_SUGGESTION);
  return value < Infinity ? value : reject(name, "a finite duration >= 0", number.got);
}

function* between(from, to, step) {
  for (let index = Math.round(from / step); index * step < to + step / 2; index++) {
    yield Number((index * step).toFixed(6));
  }
}

/** Return round durations from a unit up to a limit, for sliders. */
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
const FACTORS = [...between(0, 2, 0.05), ...between(2.5, 10, 0.5)];
const COUNTS = [...between(0, 40, 1), ...between(45, 100, 5), ...between(125, 500, 25)];

/**
 * A quantity is {read, steps, unit, edit, format, python}: `read` parses and checks
 * text, `steps` are the stops of the slider, `edit` formats a value for its field,
 * `format` for people, and `python` as source.
 */
function duration(read = readDuration, steps = [0, ...DURATIONS]) {
  const [edit, format, python] = [formatNumber, formatDuration, floatRepr];
  return { read, steps, unit: "s", edit, format, python };
}

function number(read, steps) {
  const [edit, format, python] = [formatNumber, formatNumber, floatRepr];
  return { read, steps, unit: "", edit, format, python };
}

function count(atLeast, suggestion = "") {
  const read = (name, text) => {
    const { value, got, isInteger } = parseNumber(text);
    const largest = Number.MAX_SAFE_INTEGER;
    const top = isInteger && value > largest ? ` and <= ${largest}` : "";
    return isInteger && value >= atLeast && value <= largest
      ? value
      : reject(name, `an integer >= ${atLeast}${top}`, got, suggestion);
  };
  const steps = COUNTS.filter((x) => x >= atLeast);
  const format = formatInteger;
  return { read, steps, unit: "", edit: format, format, python: format };
}

function formatNumber(x) {
  return floatRepr(x).replace(/\.0$/, "");
}

function formatInteger(x) {
  return String(BigInt(x));
}

function atLeast(least) {
  return (name, text) => checkNumber(name, parseNumber(text), least);
}

function upToOne(name, text) {
  return checkNumber(name, parseNumber(text), 0, 1);
}

function belowOne(name, text) {
  return upToOne(name, text) < 1
    ? parseNumber(text).value
    : reject(name, "a number >= 0 and < 1", parseNumber(text).got);
}

function positive(name, text) {
  const value = readDuration(name, text);
  return value || reject(name, "a duration > 0", parseNumber(text).got);
}

/** Read a duration that may be negative. */
function signedDuration(name, text) {
  const number = parseNumber(text);
  return -LONGEST <= number.value && number.value < 0
    ? number.value
    : readDuration(name, text);
}

/** Google's initial_interval is at least 1 ms; checkSchedule() checks max_interval. */
function milliseconds(name, text) {
  const value = readDuration(name, text);
  return name === "max_interval"
    ? value
    : checkNumber(name, { value, got: floatRepr(value) }, 0.001);
}

function readDelays(_name, text) {
  const delays = text.trim() ? text.trim().split(/\s*[,;]\s*|\s+/) : [];
  return delays.map((delay, index) => readDuration(`schedule[${index}]`, delay));
}

const DELAY_LIST = {
  read: readDelays,
  unit: "s",
  edit: (delays) => delays.map(formatNumber).join(", "),
  python: (delays) => `[${delays.map(floatRepr).join(", ")}]`,
};

/** The numeric settings of a policy, and the duration of attempts. */
const SETTINGS = {
  max_attempts: count(1, "the first attempt counts; None is unlimited"),
  max_elapsed: duration(),
  attempt: duration(),
};

const LARGEST_INTERVAL = (2 ** 31 - 1) / 1000;

/** Check the numbers of a schedule against each other. */
function checkSchedule(schedule) {
  for (const part of Object.values(schedule)) {
    if (part?.kind) checkSchedule(part);
  }
  if (schedule.kind === "google_interval") {
    const { max_interval: value, initial_interval: least } = schedule;
    const suggestion =
      "no shorter than initial_interval, no longer than 2**31 - 1 ms";
    checkNumber(
      "max_interval",
      { value, got: floatRepr(value) },
      least,
      LARGEST_INTERVAL,
      suggestion,
    );
  }
  if (schedule.kind === "uniform") {
    const { high: value, low: least } = schedule;
    const got = floatRepr(value);
    checkNumber("high", { value, got }, least, Infinity, "no shorter than low");
  }
  if (schedule.kind === "then" && isEndless(schedule.of)) {
    const rule = "finite, since .then() starts after its end";
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
