/*
 * A policy as Python and TOML source, with its schedule or its preset. Pure.
 *
 * The lines of settings that the page does not show are made in Python.
 */

const SYMBOLS = { sum: "+", union: "|", intersection: "&" };
const COMPOUND = ["sum", "union", "intersection", "scale"];

/** Return the Python expression of a schedule; by default its repr. */
function expression(s, format = (quantity, value) => quantity.python(value)) {
  const parts = partsOf(s).map(([name, quantity]) => [
    name,
    format(quantity, s[name]),
  ]);
  const inner = (part) => expression(part, format);
  const operand = (part) =>
    COMPOUND.includes(part.kind) ? `(${inner(part)})` : inner(part);
  if (s.kind in SYMBOLS) {
    const left = s.left.kind === s.kind ? inner(s.left) : operand(s.left);
    return `${left} ${SYMBOLS[s.kind]} ${operand(s.right)}`;
  }
  if (!s.of) {
    const [[, first], ...rest] = parts;
    const named = rest.map(([name, value]) => `${name}=${value}`);
    return `${s.kind}(${[first, ...named].join(", ")})`;
  }
  if (s.kind === "scale") return `${operand(s.of)} * ${parts[0][1]}`;
  const values = parts.map(([, value]) => value);
  if (s.kind === "switch")
    return `${operand(s.of)}.switch(after=${values}, to=${inner(s.to)})`;
  return `${operand(s.of)}.${s.kind}(${s.other ? inner(s.other) : values})`;
}

/** Return the numbers that a schedule has: names and quantities. */
function partsOf(s) {
  const parts = Object.entries(PARTS[s.kind]).filter(([name]) => s[name] !== null);
  // Delays from a first one may fall.
  const falls = s.kind === "linear" && s.first !== null;
  return falls ? parts.map(([name, x]) => [name, name === "step" ? SIGNED_STEP : x]) : parts;
}

const SIGNED_STEP = duration(signedDuration);

/** Return a value as source; durations of a minute or more as strings, if exact. */
function toSource(quantity, value) {
  const text = quantity.format === formatDuration && value >= 60 && formatDuration(value);
  return text && parseDuration(text) === value ? `"${text}"` : quantity.python(value);
}

/** Return the Python source of a policy. */
function pythonText(policy) {
  if (policy.preset) return presetPython(policy);
  const settings = [
    `schedule=${expression(policy.schedule, toSource)}`,
    ...limitSettings(policy, "None", "="),
    ...policy.python.settings,
  ];
  const body = settings.map((setting) => `    ${setting},`);
  const imports = withConstructors(policy.python.imports, policy.schedule);
  const lines = [...imports, "", "policy = Policy(", ...body, ")"];
  return [...lines, ...omitted(policy.python)].join("\n");
}

/** Return import lines with the constructors of a schedule. */
function withConstructors(imports, schedule) {
  const start = "from retrykit.schedules import ";
  const line = imports.find((each) => each.startsWith(start)) ?? start;
  const names = new Set(line.slice(start.length).split(", ").filter(Boolean));
  for (const name of constructorsOf(schedule)) names.add(name);
  const others = imports.filter((each) => each !== line);
  const first = others.findIndex((each) => each.startsWith("from "));
  const own = [...others.slice(first), start + [...names].sort().join(", ")].sort();
  return [...others.slice(0, first), ...own];
}

function constructorsOf(s) {
  const parts = Object.values(s).filter((part) => part?.kind);
  const names = parts.flatMap(constructorsOf);
  return s.of || s.left ? names : [s.kind, ...names];
}

/** Return the TOML of a policy, for pyproject.toml. */
function tomlText(policy) {
  const preset = policy.preset && presetToml(policy);
  if (preset) return preset;
  const lines = [
    `[tool.retrykit.policies.${policy.key}]`,
    // No expression contains a single quote.
    `schedule = '${expression(policy.schedule, toSource)}'`,
    ...limitSettings(policy, '"unlimited"', " = "),
    ...policy.toml.settings,
  ];
  return [...lines, ...omitted(policy.toml)].join("\n");
}

/** Return the limits that a policy does not have by default, as it has a schedule. */
function limitSettings(policy, none, equals) {
  const { schedule, max_attempts, max_elapsed, deadline } = policy;
  const endless = max_elapsed === null && isEndless(schedule);
  const names = [];
  if (max_attempts !== null || endless) names.push("max_attempts");
  if (max_elapsed !== null) names.push("max_elapsed");
  if (deadline !== "stop") names.push("deadline");
  return names.map((name) => limitSetting(policy, name, none, equals));
}

function limitSetting(policy, name, none, equals) {
  const value = policy[name];
  const text = () =>
    name === "deadline" ? `"${value}"` : toSource(SETTINGS[name], value);
  return `${name}${equals}${value === null ? none : text()}`;
}

function omitted({ omitted: names }) {
  return names.length ? [`# omitted (code): ${names.join(", ")}`] : [];
}

/** Return the [name, path, quantity] of each parameter of a policy's preset. */
function parametersOf(policy) {
  return Object.entries(policy.preset.parameters).map(([name, path]) => [
    name,
    path,
    parameterAt(policy, path),
  ]);
}

function parameterAt(policy, path) {
  if (path[0] === "max_attempts") return RETRIES;
  if (path[0] === "max_elapsed") return POSITIVE_DURATION;
  const { kind } = valueAt(policy, path.slice(0, -1));
  return PARTS[kind][path.at(-1)];
}

const RETRIES = count(0);
const POSITIVE_DURATION = duration(positive, DURATIONS);

/** Return the value of a parameter; one in max_attempts counts retries. */
function parameterValue(policy, path) {
  const value = valueAt(policy, path);
  return path[0] === "max_attempts" ? value - 1 : value;
}

function valueAt(policy, path) {
  return path.reduce((value, name) => value[name], policy);
}

/** Return whether a limit is set by a parameter of the preset. */
function isParameter(policy, limit) {
  const paths = Object.values(policy.preset?.parameters ?? {});
  return paths.some(([first]) => first === limit);
}

/** Return the limits that differ from those of the preset. */
function ownLimits(policy, none, equals) {
  return Object.entries(policy.preset.limits)
    .filter(([name, value]) => policy[name] !== value && !isParameter(policy, name))
    .map(([name]) => limitSetting(policy, name, none, equals));
}

/** Return the Python source of a policy, with its preset. */
function presetPython(policy) {
  const { name, python } = policy.preset;
  const values = parametersOf(policy).map(
    ([parameter, path, quantity]) =>
      `${parameter}=${toSource(quantity, parameterValue(policy, path))}`,
  );
  const own = [...ownLimits(policy, "None", "="), ...python.settings];
  const indented = (lines) => lines.map((line) => `    ${line},`);
  return [
    ...python.imports,
    "",
    `policy = presets.${name}(`,
    ...indented(values),
    ...(own.length ? [").replace(", ...indented(own)] : []),
    ")",
    ...omitted(python),
  ].join("\n");
}

/** Return the TOML of a policy, with its preset; null if a value has no exact text. */
function presetToml(policy) {
  const values = parametersOf(policy).map(([name, path, quantity]) => {
    const text = bareText(quantity, parameterValue(policy, path));
    return text && `${name}=${text}`;
  });
  if (values.includes(null)) return null;
  const { name, toml } = policy.preset;
  return [
    `[tool.retrykit.policies.${policy.key}]`,
    `extends = "${name}:${values.join(", ")}"`,
    ...ownLimits(policy, '"unlimited"', " = "),
    ...toml.settings,
    ...omitted(toml),
  ].join("\n");
}

/** Return a value without quotes, with the unit of a duration; null if inexact. */
function bareText(quantity, value) {
  if (quantity.format !== formatDuration) return quantity.edit(value);
  const texts = [value >= 60 ? formatDuration(value) : "", `${formatNumber(value)}s`];
  return texts.find((text) => parseDuration(text) === value) ?? null;
}
