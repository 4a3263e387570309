/*
 * Schedules read from text as `--schedule` reads it: delays with commas between them, a
 * list, or an expression. Pure.
 *
 * Every number is checked as if it were typed into its field.
 */

const METHODS = [
  ...["at_least", "cap", "equal_jitter", "full_jitter", "jitter", "round_down"],
  ...["switch", "take", "then", "within", "without_jitter"],
];

/** The numbers that an expression may leave out, as in Python. */
const DEFAULTS = {
  exponential: { factor: "2" },
  decay: { rate: "1" },
  polynomial: { first: "1" },
  fibonacci: { first: "1" },
  decorrelated: { factor: "3" },
  google_interval: {
    initial_interval: "0.5",
    randomization_factor: "0.5",
    multiplier: "1.5",
    max_interval: "60",
  },
  polly_interval: { median_first_retry_delay: "1" },
};

/** The schedules without jitter of those that have some of their own. */
const WITHOUT_JITTER = {
  full_jitter: ({ of }) => of,
  equal_jitter: ({ of }) => of,
  jitter: ({ of }) => of,
  uniform: ({ low, high }) => ({ kind: "constant", wait: low + (high - low) / 2 }),
  decorrelated: ({ first, factor }) => ({ kind: "exponential", first, factor }),
  google_interval: (s) => ({ ...s, randomization_factor: 0 }),
  polly_interval: ({ median_first_retry_delay: wait }) => ({
    kind: "switch",
    after: 1,
    of: { kind: "constant", wait },
    to: { kind: "exponential", first: wait / 2, factor: 2 },
  }),
};

// The loosest first.
const OPERATORS = [
  ["|", "union"],
  ["&", "intersection"],
  ["+", "sum"],
  ["*", "scale"],
];

const TOKEN =
  /\s*(?:([A-Za-z_]\w*)|(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|"([^"]*)"|'([^']*)'|([()[\],.=+|&*]))/iy;
const LONGEST_EXPRESSION = 10_000;
const MOST_LEVELS = 100;

/** Return the schedule of a text, or throw InvalidInput. */
function parseSchedule(text) {
  const isPlain = !text.includes("(") && !text.trimStart().startsWith("[");
  return isPlain ? parseDelays(text) : parseExpression(text);
}

function parseDelays(text) {
  const delays = text.split(",").map((each) => each.trim());
  const rule = 'delays such as "1s, 5s, 1m", or an expression such as constant("5s")';
  if (delays.length === 1) reject("schedule", rule, stringRepr(text.slice(0, 100)));
  const read = (delay, index) => {
    const name = `schedule[${index}]`;
    if (parseDuration(delay) === null)
      reject(name, TEXT_RULE, stringRepr(delay), TEXT_SUGGESTION);
    return readDuration(name, delay);
  };
  return { kind: "sequence", delays: delays.map(read) };
}

function parseExpression(text) {
  const tokens = tokensOf(text);
  let [index, level] = [0, 0];
  const fail = (suggestion = "") =>
    reject("schedule", "an expression of schedules", stringRepr(text), suggestion);
  const isNext = (symbol) => tokens[index]?.symbol === symbol;
  const skip = (symbol) => isNext(symbol) && Boolean(++index);
  const expect = (symbol) => skip(symbol) || fail(`write ${symbol}`);

  function binary(row) {
    if (row === OPERATORS.length) return methods();
    const [symbol, kind] = OPERATORS[row];
    let left = binary(row + 1);
    while (skip(symbol)) {
      const right = binary(row + 1);
      left = kind === "scale" ? scaled(left, right) : combined(kind, left, right);
    }
    return left;
  }

  /** A schedule times a number, on either side. */
  function scaled(left, right) {
    const [of, factor] = right?.kind ? [right, left] : [left, right];
    return withNumbers({ kind: "scale", of: of?.kind ? of : fail() }, [factor], {});
  }

  function combined(kind, left, right) {
    if (left?.list) fail("write the schedule before the operator");
    return { kind, left: asSchedule(left), right: asSchedule(right) };
  }

  function methods() {
    let value = primary();
    while (skip(".")) {
      const name = tokens[index++]?.name;
      if (!METHODS.includes(name)) fail(`the methods are ${METHODS.join(", ")}`);
      value = wrapped(name, asSchedule(value), callArguments());
    }
    return value;
  }

  function primary() {
    if (++level > MOST_LEVELS) fail(`write at most ${MOST_LEVELS} levels`);
    const value = innermost();
    level--;
    return value;
  }

  function innermost() {
    if (skip("(")) {
      const value = binary(0);
      expect(")");
      return value;
    }
    if (skip("[")) {
      const values = [];
      while (!skip("]")) {
        values.push(asText(primary()));
        if (!isNext("]") && !skip(",")) fail("write , or ]");
      }
      return { list: values };
    }
    const token = tokens[index++] ?? fail("it ends too soon");
    if (token.text !== undefined) return token.text;
    if (["True", "False"].includes(token.name)) return token.name;
    if (!isConstructor(token.name)) fail();
    const { given, named } = callArguments();
    return token.name === "sequence"
      ? sequence(given, named)
      : withNumbers({ kind: token.name }, given, named);
  }

  function sequence(given, { repeat_last: repeats, ...named }) {
    const made = withNumbers({ kind: "sequence" }, given, named);
    if (repeats !== "True") return made;
    if (!made.delays.length) fail("give a last delay to repeat");
    return { kind: "then", of: made, other: { kind: "constant", wait: made.delays.at(-1) } };
  }

  function callArguments() {
    const [given, named] = [[], {}];
    expect("(");
    while (!skip(")")) {
      const { name } = tokens[index] ?? fail("it ends too soon");
      if (name && tokens[index + 1]?.symbol === "=") {
        index += 2;
        named[name] = binary(0);
      } else given.push(binary(0));
      if (!isNext(")") && !skip(",")) fail("write , or )");
    }
    return { given, named };
  }

  function wrapped(kind, of, { given, named }) {
    if (kind === "then") return { kind, of, other: asSchedule(given[0] ?? named.other) };
    if (kind === "without_jitter") return withoutJitter(of);
    const { to, ...numbers } = named;
    const parts = kind === "switch" ? { to: asSchedule(to) } : {};
    return withNumbers({ kind, of, ...parts }, given, numbers);
  }

  function withNumbers(schedule, given, named) {
    const names = Object.keys(PARTS[schedule.kind]);
    const texts = Object.fromEntries(given.map((text, place) => [names[place], text]));
    Object.assign(texts, named);
    if (given.length > names.length || Object.keys(texts).some((x) => !names.includes(x)))
      fail(`${schedule.kind} takes ${names.join(", ") || "nothing"}`);
    const whole = { ...schedule };
    for (const name of names)
      whole[name] = texts[name] ?? DEFAULTS[schedule.kind]?.[name] ?? null;
    const mayLack = (name) => schedule.kind === "linear" && name === "first";
    const missing = names.find((name) => whole[name] === null && !mayLack(name));
    if (missing) fail(`give ${schedule.kind} ${missing}`);
    for (const [name, quantity] of partsOf(whole))
      whole[name] =
        quantity === DELAY_LIST
          ? delaysOf(whole[name])
          : quantity.read(name, asText(whole[name]));
    return whole;
  }

  const delaysOf = (value) =>
    (value?.list ?? fail("write a list")).map((delay, at) =>
      readDuration(`schedule[${at}]`, delay),
    );
  const asSchedule = (value) => {
    if (value?.list) return { kind: "sequence", delays: delaysOf(value) };
    return value?.kind ? value : fail();
  };
  const asText = (value) => (typeof value === "string" ? value : fail());

  const schedule = asSchedule(binary(0));
  if (index < tokens.length) fail("it ends too late");
  checkSchedule(schedule);
  return schedule;
}

/** Return a schedule whose parts draw nothing at random. */
function withoutJitter(schedule) {
  const parts = Object.entries(schedule).map(([name, part]) => [
    name,
    part?.kind ? withoutJitter(part) : part,
  ]);
  const whole = Object.fromEntries(parts);
  return Object.hasOwn(WITHOUT_JITTER, whole.kind) ? WITHOUT_JITTER[whole.kind](whole) : whole;
}

function isConstructor(name) {
  return (
    name !== undefined &&
    Object.hasOwn(PARTS, name) &&
    !METHODS.includes(name) &&
    !OPERATORS.some(([, kind]) => kind === name)
  );
}

/** Return the tokens of an expression: {name}, {text} of a number or string, {symbol}. */
function tokensOf(text) {
  if (text.length > LONGEST_EXPRESSION)
    reject("schedule", `at most ${LONGEST_EXPRESSION} characters`, `${text.length}`);
  const tokens = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (!found) reject("schedule", "an expression", stringRepr(text.slice(at)));
    const [, name, number, double, single, symbol] = found;
    tokens.push({ name, text: number ?? double ?? single, symbol });
  }
  return tokens;
}
