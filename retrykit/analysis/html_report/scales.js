/*
 * Where a duration stands on an axis, and which durations an axis names. Pure.
 */

const ROUND = [1, 2, 5]
  .flatMap((x) =>
    [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1].map((y) =>
      Number((x * y).toPrecision(1)),
    ),
  )
  .sort((a, b) => a - b);
const LINEAR_STEPS = [
  ...ROUND,
  10,
  15,
  30,
  ...[1, 2, 5, 10, 15, 30].map((x) => x * 60),
  ...[1, 2, 3, 6, 12].map((x) => x * 3600),
];
const COARSE = [
  ...[-9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1].map((power) => Number(`1e${power}`)),
  60,
  600,
  3600,
  21600,
];
const FINE = [
  ...ROUND,
  10,
  20,
  30,
  ...[1, 2, 5, 10, 20, 30].map((x) => x * 60),
  ...[1, 2, 3, 6, 12].map((x) => x * 3600),
];

/** Return the step of a linear axis up to *most*, of about so many ticks. */
function linearStep(most, ticks) {
  const step = LINEAR_STEPS.find((each) => most / each <= ticks);
  if (step) return step;
  const days = most / ticks / 86400;
  const power = 10 ** Math.floor(Math.log10(days));
  return [1, 2, 5, 10].find((x) => x * power >= days * 0.999) * power * 86400;
}

/** Return a linear scale: `at` gives 0 to 1 for a duration; `ticks` are durations. */
function linearScale(durations, mostTicks) {
  const most = largest(durations) || 1;
  const step = linearStep(most, mostTicks);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  const top = saturated(steps * step);
  const ticks = [...Array(steps + 1).keys()].map((index) => index * step);
  return {
    at: (duration) => duration / top,
    ticks: ticks.filter((tick) => tick <= LONGEST),
  };
}

/** Return a logarithmic scale, on whose lowest tick zero stands, if there is any. */
function logScale(durations, ticks) {
  const above = durations.filter((duration) => duration > 0);
  if (!above.length) return linearScale(durations, ticks);
  const zero = above.length < durations.length;
  const [least, most] = [smallest(above), largest(above)].map(Math.log10);
  // Part of the range, but no more than a power of ten.
  const part = Math.max((most - least) * 0.04, most === least ? 0.3 : 0.02);
  const room = Math.min(part, 1);
  const bottom = least - (zero ? 3 : 1) * room;
  const height = most + room - bottom;
  const at = (duration) =>
    duration > 0 ? (Math.log10(duration) - bottom) / height : 0;
  const inside = (duration) => at(duration) > (zero ? 0.06 : 0) && at(duration) <= 1;
  const days = [...Array(304).keys()].map((power) => 86400 * 10 ** power);
  const coarse = [...COARSE, ...days].filter(inside);
  const fine = [...FINE, ...days.flatMap((day) => [day, day * 2, day * 5])].filter(
    inside,
  );
  const round = coarse.length > 2 ? coarse : fine;
  // Between delays that are near to each other, no number is round.
  const marks = round.length ? round : [...new Set([smallest(above), largest(above)])];
  const every = Math.ceil(marks.length / ticks);
  const kept = marks.filter((_, place) => place % every === 0);
  return { at, ticks: zero ? [0, ...kept] : kept };
}

/** Return whole numbers from 1 to *last* to stand below an axis. */
function wholeTicks(last, most) {
  const step =
    [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000].find(
      (each) => last / each <= most,
    ) ?? Math.ceil(last / most);
  // Every other one is an odd one; of the others the first is named as well.
  const ticks = step > 2 ? [1] : [];
  for (let tick = step === 2 ? 1 : step; tick <= last; tick += step) ticks.push(tick);
  return ticks;
}
