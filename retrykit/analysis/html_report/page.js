/*
 * The page: what is on the screen, and what changes when something is typed.
 *
 * A change makes a new policy, which is shown everywhere at once: inputs,
 * chart, ends, texts and table.
 */

const DATA = JSON.parse(at("data").textContent);

const state = {
  policies: DATA.policies.map((policy, look) => ({ ...policy, look, visible: true })),
  edited: 0,
  attempt: DATA.attempt,
  view: { ...DATA.view },
};

let lines = [];
let place = null;
let controls = null;

/** Return the policy that is being edited, or another, as it would run. */
function effective(policy = state.policies[state.edited]) {
  return policy.max_elapsed === null ? { ...policy, deadline: "stop" } : policy;
}

const owner = {
  get: (path) =>
    path[0] === "attempt"
      ? state.attempt
      : path.reduce((value, name) => value[name], state.policies[state.edited]),
  set: (path, value) => {
    if (path[0] === "attempt") {
      state.attempt = value;
    } else {
      const changed = replaced(state.policies[state.edited], path, value);
      if (path[0] === "schedule") agree(changed.schedule);
      state.policies[state.edited] = changed;
    }
    show();
    controls.judgeAgain();
  },
};

/** Return the same data with the value at a path changed, and nothing shared. */
function replaced(data, [name, ...rest], value) {
  return { ...data, [name]: rest.length ? replaced(data[name], rest, value) : value };
}

const PREVIEWS = new WeakMap();

/** Return what is known of a policy, worked out once: no policy ever changes. */
function previewOf(policy) {
  const known = PREVIEWS.get(policy);
  if (known?.attempt === state.attempt) return known.found;
  const found = preview(effective(policy), state.attempt, DATA.looked_at);
  PREVIEWS.set(policy, { attempt: state.attempt, found });
  return found;
}

/** Show the policies everywhere, once all that is shown of them is known. */
function show() {
  const previews = state.policies.map(previewOf);
  const edited = effective();
  const texts = {
    expression: expression(edited.schedule, written),
    python: pythonText(edited),
    toml: tomlText(edited),
  };
  lines = state.policies
    .map((policy, number) => ({ ...policy, rows: shownRows(previews[number]) }))
    .filter((policy) => policy.visible);
  showChart();
  controls.refresh();
  for (const [id, text] of Object.entries(texts)) at(id).textContent = text;
  at("ends").replaceChildren(
    ...state.policies.map((policy, number) => endCard(policy, previews[number])),
  );
  showTable(previews[state.edited]);
}

/** Return the rows of a preview that the chart and the table have room for. */
function shownRows({ rows }) {
  return rows.slice(0, DATA.retries);
}

function showChart() {
  at("chart-title").textContent = state.view.cumulative
    ? "Time waited up to each retry"
    : "Delay before each retry";
  place = drawChart(at("chart").querySelector("svg"), lines, state.view);
  at("nothing").hidden = lines.some((line) => line.rows.length);
  reading?.refresh();
}

function endCard(policy, found) {
  const fact = (name, ...value) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
  const { soonest, latest, worst } = found;
  const calls = latest
    ? fact("calls at most", String(latest.retry + 1))
    : soonest && fact("calls at least", String(soonest.retry + 1));
  const known = worst !== null;
  const basis = known ? basisOf(policy, found) : "";
  return element(
    "article",
    { class: "card end", "data-name": policy.name },
    element("h3", {}, swatch(policy.look), policy.name),
    element("p", { class: "ending" }, ending(found)),
    element(
      "dl",
      {},
      calls,
      known ? fact("worst-case total", ...both(worst)) : null,
    ),
    basis ? element("p", { class: "hint basis" }, basis) : null,
    policy.caveats.length
      ? element("p", { class: "hint caveats" }, `Besides: ${policy.caveats.join("; ")}.`)
      : null,
  );
}

/** Return what the worst case is reckoned with: attempts, and which schedule. */
function basisOf(policy, { attempt }) {
  const took = attempt || policy.attempt_timeout;
  const parts = [
    took ? `with attempts of ${readable(took)}` : null,
    policy.has_other_delays ? "by the common schedule" : null,
  ].filter(Boolean);
  return parts.length ? `Worst case: ${parts.join(", ")}.` : "";
}

/** Return a duration as people read it, and below that exactly. */
function both(duration) {
  return [
    readable(duration),
    element("span", { class: "exact" }, `${shortest(Number(duration.toPrecision(14)))} s`),
  ];
}

function showTable(found) {
  const rows = shownRows(found);
  at("more").hidden = rows.length === found.rows.length;
  at("more").textContent = `Retries beyond ${rows.length} are not shown.`;
  at("table-name").textContent = state.policies[state.edited].name;
  const cell = (duration) => element("td", {}, ...both(duration));
  const row = ({ retry, low, high, total_low, total_high }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, String(retry)),
      ...[low, high, total_low, total_high].map(cell),
    );
  const none = element(
    "tr",
    {},
    element("td", { colspan: 5, class: "none" }, "no retry is made"),
  );
  at("rows").replaceChildren(...(rows.length ? rows.map(row) : [none]));
}

function edit(number) {
  state.edited = number;
  const policy = state.policies[number];
  controls = controlsOf(policy, DATA.told, owner);
  at("controls").replaceChildren(controls.node);
  at("controls").className = colourOf(policy.look);
  at("edited").value = number;
  show();
}

function reset() {
  const { look, visible } = state.policies[state.edited];
  state.policies[state.edited] = { ...DATA.policies[state.edited], look, visible };
  state.attempt = DATA.attempt;
  edit(state.edited);
  at("told").textContent = "Reset.";
}

function legendItem(policy, number) {
  const box = element("input", {
    type: "checkbox",
    checked: true,
    onchange: () => {
      state.policies[number] = { ...state.policies[number], visible: box.checked };
      show();
    },
  });
  return element("li", {}, element("label", {}, box, swatch(policy.look), policy.name));
}

/** Let the choice of a group of radio buttons be taken at each change. */
function onChoice(name, take) {
  for (const radio of document.querySelectorAll(`input[name="${name}"]`)) {
    radio.addEventListener("change", () => take(radio.value));
  }
}

async function copy(button) {
  const text = at(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Where a page may not write to the clipboard, the keyboard's way is there.
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  at("told").textContent = "Copied.";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

at("legend").append(...state.policies.map(legendItem));
at("edited").append(
  ...state.policies.map((policy, number) =>
    element("option", { value: number }, policy.name),
  ),
);
at("editing").hidden = at("legend").hidden = state.policies.length === 1;
at("edited").addEventListener("change", () => edit(Number(at("edited").value)));
at("reset").addEventListener("click", reset);
for (const button of document.querySelectorAll("[data-copies]"))
  button.addEventListener("click", () => copy(button));
for (const name of Object.keys(state.view)) {
  const chosen = state.view[name] ? "yes" : "no";
  document.querySelector(`input[name="${name}"][value="${chosen}"]`).checked = true;
  onChoice(name, (value) => {
    state.view[name] = value === "yes";
    show();
  });
}
onChoice("theme", (value) => {
  document.documentElement.dataset.theme = value;
});

let reading = null;
edit(0);
reading = readingOf(at("chart"), at("tooltip"), at("told"), {
  lines: () => lines,
  view: () => state.view,
  place: () => place,
});
new ResizeObserver(showChart).observe(at("chart"));

// For who looks into the page: its arithmetic, and what is on the screen.
globalThis.retrykit = {
  bounds,
  preview,
  expression,
  readable,
  parsed,
  float,
  kinds: { bounds: KINDS, parts: PARTS },
  state,
};
