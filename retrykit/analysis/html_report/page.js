/*
 * The page: its state, and everything that follows a change.
 *
 * A change makes a new policy, which is shown everywhere at once: inputs, chart,
 * ends, texts and table.
 */

const DATA = JSON.parse(byId("data").textContent);

const state = {
  policies: DATA.policies.map((policy, look) => ({ ...policy, look, visible: true })),
  edited: 0,
  attempt: DATA.attempt,
  view: { ...DATA.view },
};

let lines = [];
let geometry = null;
let controls = null;

/** Return the edited policy, or another, as it would run. */
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
    controls.recheck();
  },
};

/** Return a copy of the data with the value at a path replaced. */
function replaced(data, [name, ...rest], value) {
  return { ...data, [name]: rest.length ? replaced(data[name], rest, value) : value };
}

const PREVIEWS = new WeakMap();

/** Return the preview of a policy, cached, since policies never change. */
function previewOf(policy) {
  const known = PREVIEWS.get(policy);
  if (known?.attempt === state.attempt) return known.found;
  const found = preview(effective(policy), state.attempt, DATA.looked_at);
  PREVIEWS.set(policy, { attempt: state.attempt, found });
  return found;
}

/** Update everything on the page. */
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
  for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
  byId("ends").replaceChildren(
    ...state.policies.map((policy, number) => endCard(policy, previews[number])),
  );
  showTable(previews[state.edited]);
}

/** Return the rows of a preview that the page shows. */
function shownRows({ rows }) {
  return rows.slice(0, DATA.retries);
}

function showChart() {
  byId("chart-title").textContent = state.view.cumulative
    ? "Total delay up to each retry"
    : "Delay before each retry";
  geometry = drawChart(byId("chart").querySelector("svg"), lines, state.view);
  byId("nothing").hidden = lines.some((line) => line.rows.length);
  cursor?.refresh();
}

function endCard(policy, found) {
  const fact = (name, ...value) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
  const { soonest, latest, worst } = found;
  const calls = latest
    ? fact("calls at most", String(latest.retry + 1))
    : soonest && fact("calls at least", String(soonest.retry + 1));
  const bounded = worst !== null;
  const basis = bounded ? basisOf(policy, found) : "";
  return element(
    "article",
    { class: "card end", "data-name": policy.name },
    element("h3", {}, swatch(policy.look), policy.name),
    element("p", { class: "ending" }, ending(found)),
    element(
      "dl",
      {},
      calls,
      bounded ? fact("worst-case total", ...both(worst)) : null,
    ),
    basis ? element("p", { class: "hint basis" }, basis) : null,
    policy.caveats.length
      ? element("p", { class: "hint caveats" }, `Notes: ${policy.caveats.join("; ")}.`)
      : null,
  );
}

/** Return the assumptions of the worst case: attempts, and which schedule. */
function basisOf(policy, { attempt }) {
  const duration = attempt || policy.attempt_timeout;
  const parts = [
    duration ? `with attempts of ${readable(duration)}` : null,
    policy.has_other_delays ? "by the common schedule" : null,
  ].filter(Boolean);
  return parts.length ? `Worst case: ${parts.join(", ")}.` : "";
}

/** Return a duration for people, and below that exactly. */
function both(duration) {
  return [
    readable(duration),
    element("span", { class: "exact" }, `${shortest(Number(duration.toPrecision(14)))} s`),
  ];
}

function showTable(found) {
  const rows = shownRows(found);
  byId("more").hidden = rows.length === found.rows.length;
  byId("more").textContent = `Retries beyond ${rows.length} are not shown.`;
  byId("table-name").textContent = state.policies[state.edited].name;
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
    element("td", { colspan: 5, class: "none" }, "no retries"),
  );
  byId("rows").replaceChildren(...(rows.length ? rows.map(row) : [none]));
}

function edit(number) {
  state.edited = number;
  const policy = state.policies[number];
  controls = policyControls(policy, owner);
  byId("controls").replaceChildren(controls.node);
  byId("controls").className = colorClass(policy.look);
  byId("edited").value = number;
  show();
}

function reset() {
  const { look, visible } = state.policies[state.edited];
  state.policies[state.edited] = { ...DATA.policies[state.edited], look, visible };
  state.attempt = DATA.attempt;
  edit(state.edited);
  byId("status").textContent = "Reset.";
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

/** Call a function at each change of a group of radio buttons. */
function onChoice(name, take) {
  for (const radio of document.querySelectorAll(`input[name="${name}"]`)) {
    radio.addEventListener("change", () => take(radio.value));
  }
}

async function copy(button) {
  const text = byId(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Without permission to write to the clipboard, copy like the keyboard.
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  byId("status").textContent = "Copied.";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

byId("legend").append(...state.policies.map(legendItem));
byId("edited").append(
  ...state.policies.map((policy, number) =>
    element("option", { value: number }, policy.name),
  ),
);
byId("editing").hidden = byId("legend").hidden = state.policies.length === 1;
byId("edited").addEventListener("change", () => edit(Number(byId("edited").value)));
byId("reset").addEventListener("click", reset);
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

let cursor = null;
edit(0);
cursor = chartCursor(byId("chart"), byId("tooltip"), byId("status"), {
  lines: () => lines,
  view: () => state.view,
  geometry: () => geometry,
});
new ResizeObserver(showChart).observe(byId("chart"));

// For tests and the console.
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
