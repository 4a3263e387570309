/*
 * The page: its state, and the updates after a change.
 *
 * A change makes a new policy and updates everything: inputs, chart, ends, source and
 * table.
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

/** Return a policy as it would run; by default the edited one. */
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
      const changed = replaceAt(state.policies[state.edited], path, value);
      if (path[0] === "schedule") checkSchedule(changed.schedule);
      state.policies[state.edited] = changed;
    }
    show();
    controls.recheck();
  },
};

/** Return a copy of the data with another value at a path. */
function replaceAt(data, [name, ...rest], value) {
  return { ...data, [name]: rest.length ? replaceAt(data[name], rest, value) : value };
}

const PREVIEWS = new WeakMap();

/** Return the preview of a policy, cached, since policies never change. */
function previewOf(policy) {
  const cached = PREVIEWS.get(policy);
  if (cached?.attempt === state.attempt) return cached.result;
  const result = preview(effective(policy), state.attempt, DATA.computed_retries);
  PREVIEWS.set(policy, { attempt: state.attempt, result });
  return result;
}

/** Update everything on the page. */
function show() {
  const previews = state.policies.map(previewOf);
  const edited = effective();
  const texts = {
    expression: expression(edited.schedule, toSource),
    python: pythonText(edited),
    toml: tomlText(edited),
  };
  lines = state.policies
    .map((policy, index) => ({ ...policy, rows: shownRows(previews[index]) }))
    .filter((policy) => policy.visible);
  showChart();
  controls.refresh();
  for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
  byId("ends").replaceChildren(
    ...state.policies.map((policy, index) => endCard(policy, previews[index])),
  );
  showTable(previews[state.edited]);
  outage.show(edited);
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

function endCard(policy, result) {
  const fact = (name, ...value) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
  const { earliest, latest, worst } = result;
  const attempts = latest
    ? fact("attempts at most", String(latest.retry + 1))
    : earliest && fact("attempts at least", String(earliest.retry + 1));
  const bounded = worst !== null;
  const basis = bounded ? basisOf(policy, result) : "";
  return element(
    "article",
    { class: "card end", "data-name": policy.name },
    element("h3", {}, swatch(policy.look), policy.name),
    element("p", { class: "ending" }, describeEnd(result)),
    element(
      "dl",
      {},
      attempts,
      bounded ? fact("worst-case total", ...withExact(worst)) : null,
    ),
    basis ? element("p", { class: "hint basis" }, basis) : null,
    policy.stages
      ? element("p", { class: "hint order" }, `Order: ${describeOrder(policy)}`)
      : null,
    policy.caveats.length
      ? element("p", { class: "hint caveats" }, `Notes: ${policy.caveats.join("; ")}.`)
      : null,
  );
}

/** Return the assumptions of the worst case. */
function basisOf(policy, { attempt }) {
  const duration = attempt || policy.attempt_timeout;
  const parts = [
    duration ? `with attempts of ${formatDuration(duration)}` : null,
    policy.has_other_delays ? "by the policy's own schedule" : null,
  ].filter(Boolean);
  return parts.length ? `Worst case: ${parts.join(", ")}.` : "";
}

/** Return the stages of a policy from the outermost to the call itself. */
function describeOrder({ stages, max_elapsed, max_attempts, limits }) {
  const all = [
    ...stages.outer,
    max_elapsed === null ? null : `max_elapsed=${formatDuration(max_elapsed)}`,
    max_attempts === 1 && limits !== "all"
      ? null
      : max_attempts === null
        ? "retry"
        : `retry max_attempts=${max_attempts}`,
    ...stages.inner,
    "call",
  ].filter((stage) => stage !== null);
  return `${all.join(" ( ")} ${")".repeat(all.length - 1)}`;
}

/** Return a readable duration, and an element with the exact seconds. */
function withExact(duration) {
  return [
    formatDuration(duration),
    element("span", { class: "exact" }, `${formatNumber(Number(duration.toPrecision(14)))} s`),
  ];
}

function showTable(result) {
  const rows = shownRows(result);
  byId("more").hidden = rows.length === result.rows.length;
  byId("more").textContent = `Retries beyond ${rows.length} are not shown.`;
  byId("table-name").textContent = state.policies[state.edited].name;
  const cell = (duration) => element("td", {}, ...withExact(duration));
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

function edit(index) {
  state.edited = index;
  const policy = state.policies[index];
  controls = policyControls(policy, owner);
  byId("controls").replaceChildren(controls.node);
  byId("controls").className = colorClass(policy.look);
  byId("edited").value = index;
  show();
}

function reset() {
  const { look, visible } = state.policies[state.edited];
  state.policies[state.edited] = { ...DATA.policies[state.edited], look, visible };
  state.attempt = DATA.attempt;
  edit(state.edited);
  byId("status").textContent = "Reset.";
}

function legendItem(policy, index) {
  const box = element("input", {
    type: "checkbox",
    checked: true,
    onchange: () => {
      state.policies[index] = { ...state.policies[index], visible: box.checked };
      show();
    },
  });
  return element("li", {}, element("label", {}, box, swatch(policy.look), policy.name));
}

/** Call a function at each change of a group of radio buttons. */
function onChoice(name, callback) {
  for (const radio of document.querySelectorAll(`input[name="${name}"]`)) {
    radio.addEventListener("change", () => callback(radio.value));
  }
}

async function copy(button) {
  const text = byId(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Without permission to write to the clipboard, copy a selection.
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  byId("status").textContent = "Copied.";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

byId("legend").append(...state.policies.map(legendItem));
byId("edited").append(
  ...state.policies.map((policy, index) =>
    element("option", { value: index }, policy.name),
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
const outage = outageSection(DATA.streams);
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
  formatDuration,
  parseDuration,
  floatRepr,
  kinds: { bounds: KINDS, parts: PARTS },
  simulate,
  keyOf,
  state,
};
