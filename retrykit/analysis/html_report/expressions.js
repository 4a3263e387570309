/*
 * Schedules read from expressions, as retrykit.schedules.parse_schedule reads what a
 * schedule's repr writes. Pure.
 *
 * Every number is checked as if it were typed into its field.
 */

const METHODS = [
  ...["at_least", "cap", "equal_jitter", "full_jitter", "jitter", "round_down"],
  ...["switch", "take", "then", "within"],
];

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

/** Return the schedule of an expression, or throw InvalidInput. */
function parseSchedule(text) {
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
      left =
        kind === "scale"
          ? withNumbers({ kind, of: asSchedule(left) }, [right], {})
          : { kind, left: asSchedule(left), right: asSchedule(right) };
    }
    return left;
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
      return values.join(", ");
    }
    const token = tokens[index++] ?? fail("it ends too soon");
    if (token.text !== undefined) return token.text;
    if (!isConstructor(token.name)) fail();
    const { given, named } = callArguments();
    return withNumbers({ kind: token.name }, given, named);
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
    if (kind === "then") return { kind, of, other: asSchedule(given[0]) };
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
    for (const name of names) whole[name] = texts[name] ?? null;
    const missing = names.find((name) => whole[name] === null && name !== "first");
    if (missing) fail(`give ${schedule.kind} ${missing}`);
    for (const [name, quantity] of partsOf(whole))
      whole[name] = quantity.read(name, asText(whole[name]));
    return whole;
  }

  const asSchedule = (value) => (value?.kind ? value : fail());
  const asText = (value) => (typeof value === "string" ? value : fail());

  const schedule = asSchedule(binary(0));
  if (index < tokens.length) fail("it ends too late");
  checkSchedule(schedule);
  return schedule;
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
