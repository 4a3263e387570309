/*
 * The section on what the edited policy does to a server after an outage: its inputs,
 * the verdict, and a chart of load and goodput over time.
 */

// How long to watch the time after the outage, as by default in Python, in seconds.
const HORIZON = 300;
// More would stop the page for a second.
const MOST_EVENTS = 1e6;

const OUTAGE_INPUTS = {
  load: { name: "load", steps: [...between(10, 95, 1)], format: (x) => `${x} %` },
  duration: {
    name: "outage",
    steps: [1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60],
    format: formatDuration,
  },
  processes: {
    name: "processes",
    steps: [1, 10, 100, 1000].flatMap((x) => [x, 2 * x, 5 * x]).concat(10000),
    format: formatInteger,
  },
  timeout: {
    name: "timeout",
    steps: [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 9, 12, 15, 20, 30],
    format: formatDuration,
  },
};

/**
 * Return the section, in the elements of the page: `show(policy)`; `outcomeOf(policy)`,
 * its {result, reason}, one of which is null; `isKnown(policy)`, whether that is at once;
 * and `circumstances()`, in words. A changed input calls `onChange`.
 */
function outageSection(keys, onChange) {
  const section = byId("outage");
  const settings = {
    ...{ load: 70, kind: "hang", duration: 10, processes: 100, timeout: 1 },
    horizon: HORIZON,
  };
  const streams = Object.fromEntries(
    Object.entries(keys).map(([name, digits]) => [name, keyOf(digits)]),
  );
  let [policy, result, outcomes] = [null, null, new WeakMap()];

  const inputs = Object.entries(OUTAGE_INPUTS).map(([key, { name, steps, format }]) => {
    const output = element("output", {});
    const slider = element("input", {
      type: "range",
      min: 0,
      max: steps.length - 1,
      step: 1,
      value: nearest(steps, settings[key]),
      "data-outage": key,
      "aria-label": name,
      oninput: () => change(key, steps[slider.value]),
    });
    const refresh = () => {
      const own = key === "timeout" ? policy.attempt_timeout : null;
      slider.disabled = own !== null;
      if (own !== null) slider.value = nearest(steps, own);
      output.textContent = slider.ariaValueText = format(own ?? settings[key]);
    };
    const label = element("span", { "aria-hidden": "true" }, name);
    return { node: element("div", {}, label, output, slider), refresh };
  });
  byId("outage-inputs").append(...inputs.map(({ node }) => node));
  onChoice("kind", (kind) => change("kind", kind));

  function change(name, value) {
    settings[name] = value;
    outcomes = new WeakMap();
    inputs.forEach(({ refresh }) => refresh());
    onChange();
  }

  /** Return what an outage does under a policy, remembered, since policies never change. */
  function outcomeOf(wanted) {
    if (!outcomes.has(wanted)) outcomes.set(wanted, simulated(wanted));
    return outcomes.get(wanted);
  }

  function simulated(wanted) {
    const { missing, reasons } = wanted.simulation;
    const reason = missing
      ? `This page cannot simulate a policy with ${missing}.`
      : reasons[settings.kind];
    if (reason) return { result: null, reason };
    const found = simulate(effective(wanted), settings, streams, MOST_EVENTS);
    const tooMany = "So many attempts are too much for this page.";
    return { result: found, reason: found ? null : tooMany };
  }

  function show(changed) {
    policy = changed;
    section.className = `card ${colorClass(policy.look)}`;
    byId("outage-name").textContent = policy.name;
    inputs.forEach(({ refresh }) => refresh());
    const outcome = outcomeOf(policy);
    const { missing } = policy.simulation;
    result = outcome.result;
    byId("verdict").textContent = result ? result.verdict : outcome.reason;
    byId("verdict").className = outcomeClass(result);
    byId("outage-inputs").hidden = Boolean(missing);
    section.querySelector(".switch").hidden = Boolean(missing);
    byId("outage-picture").hidden = !result;
    // A reason that is an error is one in a terminal, too.
    const isError = outcome.reason === policy.simulation.reasons?.[settings.kind];
    byId("outage-command").hidden = Boolean(result || isError);
    byId("outage-command").querySelector("code").textContent =
      `retrykit simulate your_module:POLICY --load ${settings.load}% ` +
      `--outage ${formatDuration(settings.duration)}`;
    if (!result) return;
    const percent = Math.round((100 * result.given_up) / Math.max(result.calls, 1));
    const facts = {
      "peak load": `${formatTenths(result.peak)} times normal`,
      "attempts per call": result.amplification.toFixed(2),
      "calls that give up": `${percent} %`,
    };
    byId("outage-facts").replaceChildren(
      ...Object.entries(facts).map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, value)),
      ),
    );
    draw();
  }

  function draw() {
    if (result)
      drawOutage(byId("outage-chart").querySelector("svg"), result, settings.duration);
  }

  new ResizeObserver(draw).observe(byId("outage-chart"));

  const ways = { hang: "hangs", refuse: "refuses", error: "answers 503" };
  const circumstances = () =>
    `if it ${ways[settings.kind]} for ${formatDuration(settings.duration)} at ${settings.load} % load`;
  return { show, outcomeOf, isKnown: (wanted) => outcomes.has(wanted), circumstances };
}

/** Return the class of a verdict, which has a color. */
function outcomeClass(result) {
  return `verdict ${result ? result.outcome.replaceAll(" ", "-") : "none"}`;
}

/** Draw the load and the goodput in each second. */
function drawOutage(svg, { load, goodput }, duration) {
  const [width, height] = [
    Math.max(svg.parentNode.clientWidth, 240),
    svg.parentNode.clientHeight,
  ];
  const scale = countScale(Math.max(largest(load), CAPACITY), 5);
  const left = 18 + 7.2 * String(scale.top).length;
  const edge = { left, right: width - 16, top: 20, bottom: height - 30 };
  const x = (second) => left + (second / load.length) * (edge.right - left);
  const y = (count) => edge.bottom - (count / scale.top) * (edge.bottom - edge.top);
  const points = (counts) =>
    counts.map((n, second) => `${x(second + 0.5).toFixed(1)} ${y(n).toFixed(1)}`);
  const line = (name, counts) =>
    svgElement("path", { class: name, d: `M${points(counts).join("L")}` });
  const area = `M${x(0.5)} ${edge.bottom}L${points(load).join("L")}V${edge.bottom}Z`;
  const step = load.length / ((edge.right - left) / 60) > 60 ? 120 : 60;
  const times = [...Array(Math.floor(load.length / step) + 1).keys()];
  const band = {
    class: "outage",
    x: x(BEGIN),
    y: edge.top,
    width: x(BEGIN + duration) - x(BEGIN),
    height: edge.bottom - edge.top,
  };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    svgElement("rect", band),
    svgElement("text", { class: "outage-label", x: x(BEGIN), y: edge.top - 6 }, "outage"),
    ...scale.ticks.map((tick) => level(edge, y(tick), String(tick))),
    ...times.map((n) =>
      svgElement(
        "g",
        { class: "retry" },
        svgElement("path", { d: `M${x(n * step)} ${edge.bottom}v5` }),
        svgElement(
          "text",
          { x: x(n * step), y: edge.bottom + 19 },
          formatDuration(n * step),
        ),
      ),
    ),
    svgElement("path", { class: "axis", d: `M${left} ${edge.bottom}H${edge.right}` }),
    svgElement("path", { class: "band", d: area }),
    line("load", load),
    svgElement("path", {
      class: "capacity",
      d: `M${left} ${y(CAPACITY)}H${edge.right}`,
    }),
    line("goodput", goodput),
  );
}

/** Return the top of an axis of counts from 0, and its ticks. */
function countScale(most, ticks) {
  const power = 10 ** Math.floor(Math.log10(most / ticks));
  const step = [1, 2, 5, 10].find((x) => most / (x * power) <= ticks) * power;
  const steps = Math.ceil(most / step);
  return {
    top: steps * step,
    ticks: [...Array(steps + 1).keys()].map((index) => index * step),
  };
}
