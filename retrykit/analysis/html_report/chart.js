/*
 * The chart: the longest and the shortest delay before each retry of each policy,
 * with the band of the jitter between them.
 *
 * A line is {name, look, rows}: `look` is the index of its color and mark, and the
 * rows are those of `preview`.
 */

// There are six colors; a color that repeats has another mark.
const LOOKS = 6;
const MARKS = [
  (x, y) => svgElement("circle", { cx: x, cy: y, r: 3.5 }),
  (x, y) => svgElement("path", { d: `M${x - 3.2} ${y - 3.2}h6.4v6.4h-6.4z` }),
  (x, y) => svgElement("path", { d: `M${x} ${y - 4.4}l4.2 7.4h-8.4z` }),
  (x, y) => svgElement("path", { d: `M${x} ${y - 4.8}l4.8 4.8l-4.8 4.8l-4.8 -4.8z` }),
  (x, y) => svgElement("path", { d: `M${x} ${y + 4.4}l4.2 -7.4h-8.4z` }),
  (x, y) => svgElement("path", { d: `M${x - 4.5} ${y - 1.6}h9v3.2h-9z` }),
];

function markOf(look) {
  return MARKS[(look + Math.floor(look / LOOKS)) % MARKS.length];
}

/** Return the class that gives a line its color. */
function colorClass(look) {
  return `look-${look % LOOKS}`;
}

/** Return the bounds of a row in the chart, in seconds. */
function rowBounds(row, view) {
  return view.cumulative ? [row.total_low, row.total_high] : [row.low, row.high];
}

/** Draw lines into *svg*; return {x, y, last, edge}, the geometry in pixels. */
function drawChart(svg, lines, view) {
  const [width, height] = [
    Math.max(svg.parentNode.clientWidth, 240),
    svg.parentNode.clientHeight,
  ];
  const last = Math.max(1, ...lines.map((line) => line.rows.length));
  const durations = lines.flatMap((line) =>
    line.rows.flatMap((row) => rowBounds(row, view)),
  );
  const scale = scaleOf(durations.length ? durations : [0], height, view);
  const labels = scale.ticks.map(formatDuration);
  const left = 18 + 7.2 * Math.max(...labels.map((label) => label.length));
  const edge = { left, right: width - 16, top: 14, bottom: height - 42 };
  const inset = Math.min(24, (edge.right - edge.left) / (2 * last));
  const step = last > 1 ? (edge.right - edge.left - 2 * inset) / (last - 1) : 0;
  const x = (retry) =>
    last > 1 ? edge.left + inset + (retry - 1) * step : (edge.left + edge.right) / 2;
  const y = (duration) => edge.bottom - scale.at(duration) * (edge.bottom - edge.top);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    ...scale.ticks.map((tick, index) => level(edge, y(tick), labels[index])),
    ...integerTicks(last, Math.floor((edge.right - edge.left) / 46)).map((tick) =>
      retryTick(edge, x(tick), tick),
    ),
    svgElement("path", { class: "axis", d: `M${edge.left} ${edge.bottom}H${edge.right}` }),
    svgElement("text", { class: "axis-name", x: edge.right, y: height - 4 }, "retry"),
    ...lines.map((line) => lineOf(line, x, y, view, step || 100)),
  );
  return { x, y, last, edge };
}

function scaleOf(durations, height, view) {
  // Logarithmic ticks are spaced unevenly, so more of them fit.
  return view.log
    ? logScale(durations, height / 32)
    : linearScale(durations, height / 62);
}

function level(edge, y, label) {
  return svgElement(
    "g",
    { class: "level" },
    svgElement("path", { d: `M${edge.left} ${y}H${edge.right}` }),
    svgElement("text", { x: edge.left - 10, y: y + 4 }, label),
  );
}

function retryTick(edge, x, tick) {
  return svgElement(
    "g",
    { class: "retry" },
    svgElement("path", { d: `M${x} ${edge.bottom}v5` }),
    svgElement("text", { x, y: edge.bottom + 19 }, String(tick)),
  );
}

function lineOf(line, x, y, view, step) {
  const points = (side) =>
    line.rows.map((row) => [x(row.retry), y(rowBounds(row, view)[side])]);
  const [low, high] = [points(0), points(1)];
  const path = (along) =>
    along.map(([px, py]) => `${px.toFixed(2)} ${py.toFixed(2)}`).join("L");
  const ranges = line.rows.map((row) => rowBounds(row, view));
  const jittered = ranges.some(([shortest, longest]) => shortest !== longest);
  const mark = markOf(line.look);
  // The band of a single retry is drawn as a bar, to be visible.
  const bar =
    low.length === 1
      ? [
          [low[0][0] - 9, low[0][1]],
          [low[0][0] + 9, low[0][1]],
          [high[0][0] + 9, high[0][1]],
          [high[0][0] - 9, high[0][1]],
        ]
      : null;
  const band = bar || [...high, ...low.toReversed()];
  const marks =
    step > 14
      ? [...high, ...(jittered ? low : [])].map(([px, py]) => mark(px, py))
      : [];
  return svgElement(
    "g",
    { class: `line ${colorClass(line.look)}`, "data-name": line.name },
    jittered ? svgElement("path", { class: "band", d: `M${path(band)}Z` }) : null,
    high.length ? svgElement("path", { class: "high", d: `M${path(high)}` }) : null,
    jittered ? svgElement("path", { class: "low", d: `M${path(low)}` }) : null,
    svgElement("g", { class: "marks" }, ...marks),
  );
}

/** Return a sample of a line, for legends. */
function swatch(look) {
  return svgElement(
    "svg",
    { class: `swatch ${colorClass(look)}`, viewBox: "0 0 28 14", "aria-hidden": "true" },
    svgElement("path", { class: "band", d: "M0 3H28V11H0Z" }),
    svgElement("path", { class: "high", d: "M0 3H28" }),
    svgElement("path", { class: "low", d: "M0 11H28" }),
    svgElement("g", { class: "marks" }, markOf(look)(14, 3)),
  );
}

/** Format a range of durations for people. */
function readableRange(low, high) {
  const [least, most] = [formatDuration(low), formatDuration(high)];
  return least === most ? least : `${least} to ${most}`;
}

/** Return the step between the ticks of a linear axis from 0 to *most*. */
function linearStep(most, ticks) {
  const step = DATA.ticks.steps.find((each) => most / each <= ticks);
  if (step) return step;
  const days = most / ticks / 86400;
  const power = 10 ** Math.floor(Math.log10(days));
  return [1, 2, 5, 10].find((x) => x * power >= days * 0.999) * power * 86400;
}

/** Return a linear scale: `at` maps durations to [0, 1]; `ticks` are durations. */
function linearScale(durations, mostTicks) {
  const most = largest(durations) || 1;
  const step = linearStep(most, mostTicks);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  const top = saturate(steps * step);
  const ticks = [...Array(steps + 1).keys()].map((index) => index * step);
  return {
    at: (duration) => duration / top,
    ticks: ticks.filter((tick) => tick <= LONGEST),
  };
}

/** Return a logarithmic scale, with zero, if needed, at its lowest tick. */
function logScale(durations, ticks) {
  const positive = durations.filter((duration) => duration > 0);
  if (!positive.length) return linearScale(durations, ticks);
  const zero = positive.length < durations.length;
  const [least, most] = [smallest(positive), largest(positive)].map(Math.log10);
  // A margin of 4 % of the range, but at most one decade.
  const part = Math.max((most - least) * 0.04, most === least ? 0.3 : 0.02);
  const margin = Math.min(part, 1);
  const bottom = least - (zero ? 3 : 1) * margin;
  const height = most + margin - bottom;
  const at = (duration) =>
    duration > 0 ? (Math.log10(duration) - bottom) / height : 0;
  const inside = (duration) => at(duration) > (zero ? 0.06 : 0) && at(duration) <= 1;
  const days = [...Array(304).keys()].map((power) => 86400 * 10 ** power);
  const { powers, steps } = DATA.ticks;
  const coarse = [...powers, ...days].filter(inside);
  const fine = [...steps, ...days.flatMap((day) => [day, day * 2, day * 5])];
  const round = coarse.length > 2 ? coarse : fine.filter(inside);
  // There may be no round number between delays that are close together.
  const ends = [...new Set([smallest(positive), largest(positive)])];
  const candidates = round.length ? round : ends;
  const every = Math.ceil(candidates.length / ticks);
  const shown = candidates.filter((_, index) => index % every === 0);
  return { at, ticks: zero ? [0, ...shown] : shown };
}

/** Return the ticks of an axis of integers from 1 to *last*. */
function integerTicks(last, most) {
  const step =
    [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000].find(
      (each) => last / each <= most,
    ) ?? Math.ceil(last / most);
  // Steps of two show odd numbers; larger steps also show 1.
  const ticks = step > 2 ? [1] : [];
  for (let tick = step === 2 ? 1 : step; tick <= last; tick += step) ticks.push(tick);
  return ticks;
}
