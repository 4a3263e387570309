/*
 * Policies that are shown and written as a preset: its parameters, by their
 * own names. Pure.
 */

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
  if (path[0] === "max_elapsed") return LONGER_THAN_NONE;
  const { kind } = valueAt(policy, path.slice(0, -1));
  return PARTS[kind][path.at(-1)];
}

const RETRIES = count(0);
const LONGER_THAN_NONE = duration(positive, LENGTHS);

/** Return a value of a policy; where a parameter counts retries, their number. */
function parameterValue(policy, path) {
  const value = valueAt(policy, path);
  return path[0] === "max_attempts" ? value - 1 : value;
}

function valueAt(policy, path) {
  return path.reduce((value, name) => value[name], policy);
}

/** Return whether a parameter of a policy's preset stands for a limit. */
function isParameter(policy, limit) {
  const paths = Object.values(policy.preset?.parameters ?? {});
  return paths.some(([first]) => first === limit);
}

/** Return the limits of a policy that its preset does not set by itself. */
function ownLimits(policy, none, equals) {
  return Object.entries(policy.preset.limits)
    .filter(([name, value]) => policy[name] !== value && !isParameter(policy, name))
    .map(([name]) => limit(policy, name, none, equals));
}

/** Return the Python text of a policy, by its preset. */
function presetPython(policy) {
  const { name, python } = policy.preset;
  const values = parametersOf(policy).map(
    ([parameter, path, quantity]) =>
      `${parameter}=${written(quantity, parameterValue(policy, path))}`,
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
    ...leftOut(python),
  ].join("\n");
}

/** Return the TOML text of a policy, by its preset; null if it has none. */
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
    ...leftOut(toml),
  ].join("\n");
}

/** Return a value without quotes, a duration with its unit; null if it has none. */
function bareText(quantity, value) {
  if (quantity.tell !== readable) return quantity.show(value);
  const texts = [value >= 60 ? readable(value) : "", `${shortest(value)}s`];
  return texts.find((text) => parsed(text) === value) ?? null;
}
