/*
 * The inputs of single values: a number with its field and slider, a limit that
 * a policy may be without, and the deadline rule.
 *
 * Each is {node, refresh, judgeAgain}: the element, what shows the value as it
 * is, and what asks again about text that was refused. `owner.get(path)` gives
 * a value of the policy; `owner.set(path, value)` changes it or throws Refused.
 */

let inputsMade = 0;

/** Return one number: label, field, unit, slider, and what is wrong with it. */
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
    oninput: () => judge(field.value),
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
      oninput: () => judge(quantity.show(quantity.steps[slider.value]), true),
    });

  function judge(text, written = false) {
    if (written) field.value = text;
    try {
      const value = quantity.read(name, text);
      tell("");
      owner.set(path, value);
    } catch (reason) {
      if (!(reason instanceof Refused)) throw reason;
      tell(reason.message);
    }
  }

  function tell(wrong) {
    field.ariaInvalid = String(Boolean(wrong));
    error.textContent = wrong;
    error.hidden = !wrong;
  }

  function refresh() {
    const value = owner.get(path);
    field.disabled = value === null;
    if (slider) slider.disabled = field.disabled;
    if (value === null) {
      tell("");
      field.value = "";
      hint.textContent = "";
      return;
    }
    // What is wrong is left as it is typed, for as long as it is wrong.
    if (field.ariaInvalid === "true") return;
    if (document.activeElement !== field) field.value = quantity.show(value);
    const readably = quantity.tell === readable && value >= 60;
    hint.textContent = readably ? readable(value) : "";
    if (!slider) return;
    slider.value = nearest(quantity.steps, value);
    slider.ariaValueText = quantity.tell(value);
  }

  const judgeAgain = () => field.ariaInvalid === "true" && judge(field.value);
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
  return { node, refresh, judgeAgain };
}

/** Return the place of the step nearest to a value. */
function nearest(steps, value) {
  const log = (x) => Math.log1p(saturated(x * 1000));
  const far = (step) => Math.abs(log(step) - log(value));
  return steps.reduce(
    (best, step, place) => (far(step) < far(steps[best]) ? place : best),
    0,
  );
}

/** Return the input of a limit that a policy may be without. */
function optional(name, otherwise, owner) {
  const { node, refresh, judgeAgain } = input(name, SETTINGS[name], [name], owner);
  let last = owner.get([name]) ?? otherwise;
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
    judgeAgain,
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
    // Without max_elapsed there is nothing that the other rules are about.
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
