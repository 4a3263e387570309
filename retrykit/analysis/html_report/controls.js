/*
 * The inputs of one policy: a field and a slider for each of its numbers,
 * grouped as its expression is.
 *
 * Knows nothing of charts. `owner.get(path)` gives a value of the policy,
 * `owner.set(path, value)` changes it or throws Refused.
 */

/**
 * Return {node, refresh, judgeAgain} of all inputs of a policy: the last asks
 * again about what was refused, which may do beside what was changed since.
 */
function controlsOf(policy, told, owner) {
  const inputs = [];
  const place = { owner, told, keep: (input) => inputs.push(input) && input.node };
  const groups = [
    ...(policy.preset
      ? [presetGroup(policy, place)]
      : scheduleGroups(policy.schedule, ["schedule"], place)),
    limitsGroup(policy, place),
    group("each attempt", "How long one call of the function takes.", [
      place.keep(input("attempt", SETTINGS.attempt, ["attempt"], owner)),
    ]),
  ];
  const refresh = () => inputs.forEach((each) => each.refresh());
  const judgeAgain = () => inputs.forEach((each) => each.judgeAgain?.());
  return { node: element("div", { class: "groups" }, ...groups), refresh, judgeAgain };
}

function code(text) {
  return element("code", {}, text);
}

/** Return a sentence with the names in it, which stand between backticks. */
function told(sentence) {
  return sentence.split("`").map((part, place) => (place % 2 ? code(part) : part));
}

function group(legend, hint, children) {
  return element(
    "fieldset",
    { class: "group" },
    element("legend", {}, legend),
    hint ? element("p", { class: "hint" }, ...told(hint)) : null,
    ...children,
  );
}

/** Return the fieldsets of a schedule, in the order of its expression. */
function scheduleGroups(s, path, place) {
  const parts = (name) => scheduleGroups(s[name], [...path, name], place);
  const inner = (name) => element("div", { class: "inner" }, ...parts(name));
  const operand = (name) =>
    COMPOUND.includes(s[name].kind) && s[name].kind !== s.kind
      ? [inner(name)]
      : parts(name);
  if (s.kind in SYMBOLS) {
    const symbol = element(
      "p",
      { class: "symbol" },
      element("b", {}, SYMBOLS[s.kind]),
      " ",
      ...told(place.told[s.kind]),
    );
    const right = COMPOUND.includes(s.right.kind) ? [inner("right")] : parts("right");
    return [...operand("left"), symbol, ...right];
  }
  const inputs = Object.entries(PARTS[s.kind]).map(([name, quantity]) =>
    place.keep(input(name, quantity, [...path, name], place.owner)),
  );
  if (!s.of) return [group(code(`${s.kind}(…)`), place.told[s.kind], inputs)];
  const other = ["other", "to"].filter((name) => s[name]).map(inner);
  const legend =
    s.kind === "scale"
      ? "× factor"
      : `.${s.kind}(${inputs.length || other.length ? "…" : ""})`;
  return [
    ...operand("of"),
    group(code(legend), place.told[s.kind], [...inputs, ...other]),
  ];
}

/** Return the fieldset of a preset's own parameters. */
function presetGroup(policy, { owner, keep }) {
  const retries = {
    get: (path) => owner.get(path) - 1,
    set: (path, value) => owner.set(path, value + 1),
  };
  const { name, summary } = policy.preset;
  const inputs = parametersOf(policy).map(([parameter, path, quantity]) =>
    keep(input(parameter, quantity, path, quantity === RETRIES ? retries : owner)),
  );
  return group(code(`${name}(…)`), summary, inputs);
}

function limitsGroup(policy, { owner, keep }) {
  const inputs = Object.entries({ max_attempts: 5, max_elapsed: 60 })
    .filter(([name]) => !isParameter(policy, name))
    .map(([name, otherwise]) => keep(optional(name, otherwise, owner)));
  return group("limits of the policy", "", [...inputs, keep(deadlineInput(owner))]);
}
