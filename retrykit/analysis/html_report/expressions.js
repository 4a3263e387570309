/*
 * A policy as text: the Python that builds it, and the TOML that is read as it.
 *
 * Settings that are not on the screen come written from Python. Pure.
 */

const SYMBOLS = { sum: "+", union: "|", intersection: "&" };
const COMPOUND = ["sum", "union", "intersection", "scale"];

/** Return the expression of a schedule, as its repr is. */
function expression(s, number = (quantity, value) => quantity.python(value)) {
  const parts = Object.entries(PARTS[s.kind]).map(([name, quantity]) => [
    name,
    number(quantity, s[name]),
  ]);
  const inner = (part) => expression(part, number);
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

/** Return a duration as people write it: text from a minute up, where it is exact. */
function written(quantity, value) {
  const told = quantity.tell === readable && value >= 60 && readable(value);
  return told && parsed(told) === value ? `"${told}"` : quantity.python(value);
}

/** Return the Python text of a policy. */
function pythonText(policy) {
  if (policy.preset) return presetPython(policy);
  const settings = [
    `schedule=${expression(policy.schedule, written)}`,
    ...limits(policy, "None", "="),
    ...policy.python.settings,
  ];
  const body = settings.map((setting) => `    ${setting},`);
  const lines = [...policy.python.imports, "", "policy = Policy(", ...body, ")"];
  return [...lines, ...leftOut(policy.python)].join("\n");
}

/** Return the TOML text of a policy, as for pyproject.toml. */
function tomlText(policy) {
  const preset = policy.preset && presetToml(policy);
  if (preset) return preset;
  const own = [
    ...limits(policy, '"unlimited"', " = "),
    ...policy.toml.settings,
  ];
  const lines = [
    `[tool.retrykit.policies.${policy.key}]`,
    // No expression has a quote of this kind in it, so nothing is to be escaped.
    `schedule = '${expression(policy.schedule, written)}'`,
    ...own,
  ];
  return [...lines, ...leftOut(policy.toml)].join("\n");
}

function limits(policy, none, equals) {
  const names = ["max_attempts", "max_elapsed"];
  if (policy.deadline !== "stop") names.push("deadline");
  return names.map((name) => limit(policy, name, none, equals));
}

function limit(policy, name, none, equals) {
  const value = policy[name];
  const text = () =>
    name === "deadline" ? `"${value}"` : written(SETTINGS[name], value);
  return `${name}${equals}${value === null ? none : text()}`;
}

function leftOut({ left_out: names }) {
  return names.length ? [`# left out, being code: ${names.join(", ")}`] : [];
}
