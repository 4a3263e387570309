/*
 * The chart: for each policy the longest and the shortest delay before each
 * retry, and the band of its jitter between them.
 *
 * A line is {name, look, rows}: `look` numbers its colour and mark, the rows
 * are those of `preview`. Knows nothing of inputs.
 */

// Six colours tell policies apart; where they come again, so do other marks.
const LOOKS = 6;
const MARKS = [
  (x, y) => drawn("circle", { cx: x, cy: y, r: 3.5 }),
  (x, y) => drawn("path", { d: `M${x - 3.2} ${y - 3.2}h6.4v6.4h-6.4z` }),
  (x, y) => drawn("path", { d: `M${x} ${y - 4.4}l4.2 7.4h-8.4z` }),
  (x, y) => drawn("path", { d: `M${x} ${y - 4.8}l4.8 4.8l-4.8 4.8l-4.8 -4.8z` }),
  (x, y) => drawn("path", { d: `M${x} ${y + 4.4}l4.2 -7.4h-8.4z` }),
  (x, y) => drawn("path", { d: `M${x - 4.5} ${y - 1.6}h9v3.2h-9z` }),
];

function markOf(look) {
  return MARKS[(look + Math.floor(look / LOOKS)) % MARKS.length];
}

/** Return the class that gives a line its colour. */
function colourOf(look) {
  return `look-${look % LOOKS}`;
}

/** Return the shortest and longest of a row, as the chart shows them. */
function shown(row, view) {
  return view.cumulative ? [row.total_low, row.total_high] : [row.low, row.high];
}

/** Draw lines into *svg*, and return where retries and durations stand in it. */
function drawChart(svg, lines, view) {
  const [width, height] = [
    Math.max(svg.parentNode.clientWidth, 240),
    svg.parentNode.clientHeight,
  ];
  const last = Math.max(1, ...lines.map((line) => line.rows.length));
  const durations = lines.flatMap((line) =>
    line.rows.flatMap((row) => shown(row, view)),
  );
  const scale = scaleOf(durations.length ? durations : [0], height, view);
  const labels = scale.ticks.map(readable);
  const left = 18 + 7.2 * Math.max(...labels.map((label) => label.length));
  const edge = { left, right: width - 16, top: 14, bottom: height - 42 };
  const inset = Math.min(24, (edge.right - edge.left) / (2 * last));
  const step = last > 1 ? (edge.right - edge.left - 2 * inset) / (last - 1) : 0;
  const x = (retry) =>
    last > 1 ? edge.left + inset + (retry - 1) * step : (edge.left + edge.right) / 2;
  const y = (duration) => edge.bottom - scale.at(duration) * (edge.bottom - edge.top);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    ...scale.ticks.map((tick, place) => level(edge, y(tick), labels[place])),
    ...wholeTicks(last, Math.floor((edge.right - edge.left) / 46)).map((tick) =>
      retryTick(edge, x(tick), tick),
    ),
    drawn("path", { class: "axis", d: `M${edge.left} ${edge.bottom}H${edge.right}` }),
    drawn("text", { class: "axis-name", x: edge.right, y: height - 4 }, "retry"),
    ...lines.map((line) => lineOf(line, x, y, view, step || 100)),
  );
  return { x, y, last, edge };
}

function scaleOf(durations, height, view) {
  // Ticks of a logarithmic scale lie apart as they fall: more of them are read well.
  return view.log
    ? logScale(durations, height / 32)
    : linearScale(durations, height / 62);
}

function level(edge, y, label) {
  return drawn(
    "g",
    { class: "level" },
    drawn("path", { d: `M${edge.left} ${y}H${edge.right}` }),
    drawn("text", { x: edge.left - 10, y: y + 4 }, label),
  );
}

function retryTick(edge, x, tick) {
  return drawn(
    "g",
    { class: "retry" },
    drawn("path", { d: `M${x} ${edge.bottom}v5` }),
    drawn("text", { x, y: edge.bottom + 19 }, String(tick)),
  );
}

function lineOf(line, x, y, view, step) {
  const points = (side) =>
    line.rows.map((row) => [x(row.retry), y(shown(row, view)[side])]);
  const [low, high] = [points(0), points(1)];
  const path = (along) =>
    along.map(([px, py]) => `${px.toFixed(2)} ${py.toFixed(2)}`).join("L");
  const jittered = line.rows.some((row) => shown(row, view)[0] !== shown(row, view)[1]);
  const mark = markOf(line.look);
  // A band of one retry is a bar, or it could not be seen.
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
  return drawn(
    "g",
    { class: `line ${colourOf(line.look)}`, "data-name": line.name },
    jittered ? drawn("path", { class: "band", d: `M${path(band)}Z` }) : null,
    high.length ? drawn("path", { class: "high", d: `M${path(high)}` }) : null,
    jittered ? drawn("path", { class: "low", d: `M${path(low)}` }) : null,
    drawn("g", { class: "marks" }, ...marks),
  );
}

/** Return a small picture of a line, for legends. */
function swatch(look) {
  return drawn(
    "svg",
    { class: `swatch ${colourOf(look)}`, viewBox: "0 0 28 14", "aria-hidden": "true" },
    drawn("path", { class: "band", d: "M0 3H28V11H0Z" }),
    drawn("path", { class: "high", d: "M0 3H28" }),
    drawn("path", { class: "low", d: "M0 11H28" }),
    drawn("g", { class: "marks" }, markOf(look)(14, 3)),
  );
}

/** Return a duration or a range of them, for people. */
function rangeTold(low, high) {
  const told = [readable(low), readable(high)];
  return low === high || told[0] === told[1] ? told[0] : `${told[0]} to ${told[1]}`;
}
