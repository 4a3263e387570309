/*
 * Numbers and durations as people read and write them, and as Python prints
 * them. Pure.
 */

/** Return a float as Python's repr does: 1.0, 0.25, 1e+16. */
function float(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [digits, exponent] = x.toExponential().split("e");
  const power = Number(exponent);
  if (x !== 0 && (power < -4 || power >= 16)) return digits + powerOfTen(power);
  return Number.isInteger(x) ? `${x}.0` : String(x);
}

/** Return a number with so many digits at most, as Python's format "g" does. */
function general(x, digits = 6) {
  const [mantissa, exponent] = rounded(x, digits).split("e");
  const power = Number(exponent);
  if (power < -4 || power >= digits) return Number(mantissa) + powerOfTen(power);
  return String(Number(`${mantissa}e${exponent}`));
}

/** Return a number rounded to so many digits; what lies in the middle to even. */
function rounded(x, digits) {
  // So many digits show all of a float that lies in the middle.
  const [all, exponent] = x.toExponential(60).split("e");
  const cut = all.slice(0, digits + 1);
  const middle = /^50*$/.test(all.slice(digits + 1));
  const even = "02468".includes(cut.at(-1));
  return middle && even && digits > 1 ? `${cut}e${exponent}` : x.toExponential(digits - 1);
}

function powerOfTen(power) {
  return `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Return a text as Python's repr does. */
function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return mark + inside + mark;
}

// What three digits would round up to the next unit is told in the next unit.
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

/** Return a duration in seconds for people, as retrykit._internal.durations.readable does. */
function readable(duration) {
  if (duration < 1e-9) return "0s";
  for (const [unit, size, end] of SMALL) {
    if (duration < end) return general(duration / size, 3) + unit;
  }
  // So many digits are no longer read.
  if (duration >= 86400e6) return `${general(duration / 86400, 3)}d`;
  const rounded = STEPS.map(([step, end]) => [halfEven(duration / step) * step, end]);
  const [total] = rounded.find(([length, end]) => length < end);
  const units = LARGE.filter(([, size]) => size <= total);
  const [large, size] = units[0];
  const told = `${Math.floor(total / size)}${large}`;
  const rest = total % size;
  if (!rest || units.length === 1) return told;
  const [small, step] = units[1];
  return rest >= step ? `${told}${Math.floor(rest / step)}${small}` : told;
}

const PARTS_OF_SECONDS = { us: 1e6, ms: 1e3 };
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
const TERM = "([0-9]{1,15}(?:\\.[0-9]+)?)(us|ms|[smhdw])";
const SPACE = "[ \\t\\n\\r\\f\\v]*";

/** Return the seconds of a text such as "1h30m", or null if it is none. */
function parsed(text) {
  if (!new RegExp(`^${SPACE}(?:${TERM}${SPACE})+$`).test(text)) return null;
  let total = 0;
  for (const [, digits, unit] of text.matchAll(new RegExp(TERM, "g"))) {
    const parts = PARTS_OF_SECONDS[unit];
    total += parts ? Number(digits) / parts : Number(digits) * SECONDS[unit];
  }
  return total;
}
