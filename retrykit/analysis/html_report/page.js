/*
 * The page: its state, and the updates after a change.
 *
 * A change makes a new policy and updates everything: inputs, chart, answers, source and
 * table. After a pause, the policies are simulated, and are in the address of the page.
 */

const DATA = JSON.parse(byId("data").textContent);

const state = {
  policies: [],
  edited: 0,
  attempt: DATA.attempt,
  view: { ...DATA.view },
  answers: [],
  isChanged: false,
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
    state.isChanged = true;
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
  const texts = { python: pythonText(edited), toml: tomlText(edited) };
  lines = state.policies
    .map((policy, index) => ({ ...policy, rows: shownRows(previews[index]) }))
    .filter((policy) => policy.visible);
  showChart();
  controls.refresh();
  for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
  byId("expression").replaceChildren(...unbroken(expression(edited.schedule, toSource)));
  showTable(previews[state.edited]);
  showAnswers();
  answerSoon();
}

// More changes of the address in half a minute would be an error in some browsers.
const PAUSE = 200;

let timer = null;

/** Simulate after the last of several changes, and write them to the address. */
function answerSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (state.isChanged) writeAddress();
    answerNext();
  }, state.isChanged ? PAUSE : 0);
}

/** Answer for one policy after another, the edited one first. */
function answerNext() {
  const edited = state.policies[state.edited];
  const next = [edited, ...state.policies].find((policy) => !isAnswered(policy));
  if (next) {
    answer(next);
    timer = setTimeout(answerNext, 0);
  }
  if (isAnswered(edited)) outage.show(edited);
  showAnswers();
}

// The time of an attempt with which each policy was answered for.
const ANSWERED = new WeakMap();

function isAnswered(policy) {
  return outage.isKnown(policy) && ANSWERED.get(policy) === state.attempt;
}

function answer(policy) {
  const { attempt } = state;
  const found = [attempt, previewOf(policy), DATA.computed_retries];
  const median = medianTime(effective(policy), ...found);
  const circumstances = outage.circumstances();
  state.answers[policy.look] = { median, circumstances, ...outage.outcomeOf(policy) };
  ANSWERED.set(policy, attempt);
}

function showAnswers() {
  const cards = state.policies.map((policy) =>
    answerCard(effective(policy), previewOf(policy), {
      answers: state.answers[policy.look],
      isPending: !isAnswered(policy),
      hasAttempts: Boolean(state.attempt || policy.attempt_timeout),
    }),
  );
  byId("answers").replaceChildren(...cards);
}

/** Return the address of the page as it is now. */
function currentAddress() {
  const { href } = location;
  return `${href.split("#")[0]}#${addressOf(state.policies, state.attempt)}`;
}

function writeAddress() {
  try {
    history.replaceState(null, "", currentAddress());
  } catch (error) {
    // A page within another may have no address of its own.
    if (!(error instanceof DOMException)) throw error;
  }
}

/** Show the policies of the address, or say what in it cannot be read. */
function readPolicies() {
  const given = location.hash.slice(1);
  state.policies = DATA.policies.map((policy, look) => {
    const { visible = true } = state.policies[look] ?? {};
    return { ...policy, look, visible };
  });
  state.attempt = DATA.attempt;
  state.isChanged = false;
  let problem = "";
  try {
    if (given) Object.assign(state, readAddress(given, state.policies, state.attempt));
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    problem = `The address cannot be read, and the page is as it was made: ${error.message}.`;
  }
  byId("problem").textContent = problem;
  byId("problem").hidden = !problem;
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
  state.isChanged = true;
  byId("problem").hidden = true;
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

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission to write to the clipboard, copy a selection.
    const copied = element("pre", {}, text);
    document.body.append(copied);
    getSelection().selectAllChildren(copied);
    document.execCommand("copy");
    copied.remove();
  }
  const { label } = button.dataset;
  button.textContent = "Copied";
  byId("status").textContent = "Copied.";
  setTimeout(() => (button.textContent = label), 1500);
}

readPolicies();
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
  button.addEventListener("click", () => copy(button, byId(button.dataset.copies).textContent));
byId("link").addEventListener("click", () => copy(byId("link"), currentAddress()));
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
const outage = outageSection(DATA.streams, () => {
  showAnswers();
  answerSoon();
});
edit(0);
cursor = chartCursor(byId("chart"), byId("tooltip"), byId("status"), {
  lines: () => lines,
  view: () => state.view,
  geometry: () => geometry,
});
new ResizeObserver(showChart).observe(byId("chart"));
addEventListener("hashchange", () => {
  readPolicies();
  edit(state.edited);
});
addEventListener("beforeprint", () => {
  state.policies.filter((policy) => !isAnswered(policy)).forEach(answer);
  answerNext();
});

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
  parseSchedule,
  state,
};
