/*
 * The inputs of a policy: a field and a slider for each of its numbers, grouped
 * like its expression.
 *
 * Each input is {node, refresh, recheck}: its element; a function that shows the
 * current value; and one that validates rejected text again, since another change may
 * have made it valid. `owner.get(path)` returns a value of the policy, and
 * `owner.set(path, value)` changes it or throws InvalidInput.
 */

/** Create an HTML element; strings among the children stay text. */
function element(tag, attributes = {}, ...children) {
  return populate(document.createElement(tag), attributes, children);
}

/** Create an SVG element. */
function svgElement(tag, attributes = {}, ...children) {
  return populate(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    attributes,
    children,
  );
}

function populate(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

let inputsMade = 0;

/** Return the input of one number: label, field, unit, slider and error. */
function input(name, quantity, path, owner) {
  const id = `input-${++inputsMade}`;
  const dotted = path.join(".");
  const error = element("p", {
    class: "error",
    id: `${id}-error`,
    role: "alert",
    hidden: true,
  });
  const hint = element("span", { class: "readable" });
  const field = element("input", {
    id,
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    spellcheck: "false",
    "data-path": dotted,
    "aria-describedby": error.id,
    oninput: () => change(field.value),
    onblur: () => refresh(),
  });
  const slider =
    quantity.steps &&
    element("input", {
      type: "range",
      min: 0,
      max: quantity.steps.length - 1,
      step: 1,
      "data-slider": dotted,
      "aria-label": `${name}, slider`,
      oninput: () => {
        field.value = quantity.edit(quantity.steps[slider.value]);
        change(field.value);
      },
    });

  function change(text) {
    try {
      const value = quantity.read(name, text);
      showError("");
      owner.set(path, value);
    } catch (reason) {
      if (!(reason instanceof InvalidInput)) throw reason;
      showError(reason.message);
    }
  }

  function showError(message) {
    field.ariaInvalid = String(Boolean(message));
    error.textContent = message;
    error.hidden = !message;
  }

  function refresh() {
    const value = owner.get(path);
    field.disabled = value === null;
    if (slider) slider.disabled = field.disabled;
    if (value === null) {
      showError("");
      field.value = "";
      hint.textContent = "";
      return;
    }
    // Keep invalid text, so that it can be corrected.
    if (field.ariaInvalid === "true") return;
    if (document.activeElement !== field) field.value = quantity.edit(value);
    const long = quantity.format === formatDuration && value >= 60;
    hint.textContent = long ? formatDuration(value) : "";
    if (!slider) return;
    slider.value = nearest(quantity.steps, value);
    slider.ariaValueText = quantity.format(value);
  }

  const recheck = () => field.ariaInvalid === "true" && change(field.value);
  const box = element(
    "span",
    { class: "box" },
    field,
    quantity.unit ? element("span", { class: "unit" }, quantity.unit) : null,
  );
  const node = element(
    "div",
    { class: quantity.steps ? "input" : "input wide" },
    element("label", { for: id }, name),
    hint,
    box,
    slider || null,
    error,
  );
  return { node, refresh, recheck };
}

/** Return the index of the step nearest to a value. */
function nearest(steps, value) {
  const log = (x) => Math.log1p(saturate(x * 1000));
  const distance = (step) => Math.abs(log(step) - log(value));
  return steps.reduce(
    (best, step, index) => (distance(step) < distance(steps[best]) ? index : best),
    0,
  );
}

/** Return the input of a limit with a checkbox that switches it off. */
function limitInput(name, initial, owner) {
  const { node, refresh, recheck } = input(name, SETTINGS[name], [name], owner);
  let last = owner.get([name]) ?? initial;
  const box = element("input", {
    type: "checkbox",
    "data-limit": name,
    "aria-label": `${name} limited`,
    onchange: () => {
      last = owner.get([name]) ?? last;
      owner.set([name], box.checked ? last : null);
    },
  });
  node
    .querySelector(".readable")
    .before(element("label", { class: "check" }, box, "limited"));
  node.classList.add("optional");
  return {
    node,
    recheck,
    refresh: () => {
      box.checked = owner.get([name]) !== null;
      refresh();
    },
  };
}

const DEADLINES = {
  stop: "never wait for an attempt that could not start in time",
  clip: "shorten the last delay, for one attempt at the limit",
  overshoot: "stop only once the limit has passed",
};

function deadlineInput(owner) {
  const id = `input-${++inputsMade}`;
  const hint = element("p", { class: "hint", id: `${id}-hint` });
  const options = Object.keys(DEADLINES).map((rule) =>
    element("option", { value: rule }, rule),
  );
  const select = element(
    "select",
    {
      id,
      "data-path": "deadline",
      "aria-describedby": hint.id,
      onchange: () => owner.set(["deadline"], select.value),
    },
    ...options,
  );
  const refresh = () => {
    // Without max_elapsed the other rules have no effect.
    const unlimited = owner.get(["max_elapsed"]) === null;
    select.disabled = unlimited;
    select.value = unlimited ? "stop" : owner.get(["deadline"]);
    hint.textContent = unlimited ? "there is no max_elapsed" : DEADLINES[select.value];
  };
  return {
    node: element(
      "div",
      { class: "input choice" },
      element("label", { for: id }, "deadline"),
      select,
      hint,
    ),
    refresh,
  };
}

/** Return {node, refresh, recheck} of all inputs of a policy. */
function policyControls(policy, owner) {
  const inputs = [];
  const context = { owner, add: (input) => inputs.push(input) && input.node };
  const groups = [
    ...(policy.preset
      ? [presetGroup(policy, context)]
      : scheduleGroups(policy.schedule, ["schedule"], context)),
    limitsGroup(policy, context),
    group("each attempt", "How long each call of the function takes.", [
      context.add(input("attempt", SETTINGS.attempt, ["attempt"], owner)),
    ]),
  ];
  const refresh = () => inputs.forEach((each) => each.refresh());
  const recheck = () => inputs.forEach((each) => each.recheck?.());
  return { node: element("div", { class: "groups" }, ...groups), refresh, recheck };
}

function code(text) {
  return element("code", {}, text);
}

/** Return the parts of a sentence, with text in backticks as code elements. */
function markedUp(sentence) {
  return sentence.split("`").map((part, index) => (index % 2 ? code(part) : part));
}

function group(legend, hint, children) {
  return element(
    "fieldset",
    { class: "group" },
    element("legend", {}, legend),
    hint ? element("p", { class: "hint" }, ...markedUp(hint)) : null,
    ...children,
  );
}

/** Return the fieldsets of a schedule, in the order of its expression. */
function scheduleGroups(s, path, context) {
  const parts = (name) => scheduleGroups(s[name], [...path, name], context);
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
      ...markedUp(DATA.descriptions[s.kind]),
    );
    const right = COMPOUND.includes(s.right.kind) ? [inner("right")] : parts("right");
    return [...operand("left"), symbol, ...right];
  }
  const inputs = partsOf(s).map(([name, quantity]) =>
    context.add(input(name, quantity, [...path, name], context.owner)),
  );
  if (!s.of) return [group(code(`${s.kind}(…)`), DATA.descriptions[s.kind], inputs)];
  const other = ["other", "to"].filter((name) => s[name]).map(inner);
  const legend =
    s.kind === "scale"
      ? "× factor"
      : `.${s.kind}(${inputs.length || other.length ? "…" : ""})`;
  return [
    ...operand("of"),
    group(code(legend), DATA.descriptions[s.kind], [...inputs, ...other]),
  ];
}

/** Return the fieldset of a preset's own parameters. */
function presetGroup(policy, { owner, add }) {
  const retries = {
    get: (path) => owner.get(path) - 1,
    set: (path, value) => owner.set(path, value + 1),
  };
  const { name, summary } = policy.preset;
  const inputs = parametersOf(policy).map(([parameter, path, quantity]) =>
    add(input(parameter, quantity, path, quantity === RETRIES ? retries : owner)),
  );
  return group(code(`${name}(…)`), summary, inputs);
}

function limitsGroup(policy, { owner, add }) {
  const inputs = Object.entries({ max_attempts: 5, max_elapsed: 60 })
    .filter(([name]) => !isParameter(policy, name))
    .map(([name, initial]) => add(limitInput(name, initial, owner)));
  return group("limits", "", [...inputs, add(deadlineInput(owner))]);
}
