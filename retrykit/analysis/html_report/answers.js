/*
 * What one wants to know of a policy, in words and figures: when it gives up, how long a
 * call takes, and what it does to a server that is down. Pure.
 *
 * `result` is a preview of the policy.
 */

// As many calls give a median that is right to some percent.
const SAMPLED_CALLS = 500;
const MOST_DRAWS = 200_000;

/** Return when a policy gives up: "after 5 attempts". */
function describeGivingUp(policy, { rows, earliest, latest }) {
  const { max_attempts, max_elapsed, schedule, deadline, limits } = policy;
  if (earliest === null) {
    const endless = max_attempts === null && max_elapsed === null && isEndless(schedule);
    return endless ? "never" : `after more than ${rows.length + 1} attempts`;
  }
  const reasons = new Set([earliest.reason, (latest ?? earliest).reason]);
  const attempts = () => `after ${countAttempts(earliest.retry + 1, latest.retry + 1)}`;
  if (!reasons.delete("max_elapsed")) return attempts();
  const time = formatDuration(max_elapsed);
  if (limits === "all" && max_attempts !== null)
    return `after ${max_attempts} attempts and ${time}`;
  const within = `${deadline === "overshoot" ? "after" : "within"} ${time}`;
  return reasons.size ? `${attempts()}, or ${within}` : within;
}

function countAttempts(least, most) {
  if (most === 1) return "the first attempt";
  return `${least === most ? most : `${least} to ${most}`} attempts`;
}

/**
 * Return the median {time, exact} of calls that fail every time, including attempts that
 * take so long; null if half of them go on beyond the retries.
 */
function medianTime(policy, attempt, result, retries) {
  if (result.earliest === null) return null;
  const longest = policy.attempt_timeout ?? Infinity;
  const duration = Math.min(attempt || (policy.attempt_timeout ?? 0), longest);
  if (duration === result.attempt && isSymmetric(policy, result)) {
    const middle = (sum, { low, high }) => sum + (low / 2 + high / 2);
    const waits = result.rows.reduce(middle, 0);
    return { time: saturate(waits + duration * (result.rows.length + 1)), exact: true };
  }
  const times = sampleTimes(policy, duration, retries).sort((a, b) => a - b);
  const time = times[halfEven((times.length + 1) / 2) - 1];
  return time === Infinity ? null : { time, exact: times[0] === times.at(-1) };
}

/**
 * Return whether all calls make as many attempts, and every delay is fixed or uniform: a
 * sum of uniform delays is as often below its mean as above.
 */
function isSymmetric({ schedule, max_elapsed }, { earliest, latest, worst }) {
  const isFixed = latest !== null && earliest.retry === latest.retry;
  return isFixed && isUniform(schedule) && (max_elapsed === null || worst <= max_elapsed);
}

/** Return the times of calls that fail every time, with the draws of these seeds. */
function sampleTimes(policy, duration, retries) {
  const delayOf = drawnDelays(policy.schedule);
  const [high, low] = policy.simulation.seed ?? [0, 0];
  const times = [];
  for (let [index, drawn] = [0, 0]; index < SAMPLED_CALLS && drawn < MOST_DRAWS; index++) {
    const seed = low + index;
    const draws = new CallDraws(high + Math.floor(seed / 2 ** 32), seed >>> 0);
    const [time, made] = timeOf(policy, duration, retries, (retry, previous) =>
      delayOf(retry, previous, draws),
    );
    times.push(time);
    drawn += made;
  }
  return times;
}

/** Return how long a call takes, and its number of attempts; Infinity if it goes on. */
function timeOf(policy, duration, retries, delayOf) {
  const allowed = timeLimit(policy) / SECOND;
  let [elapsed, previous] = [0, null];
  for (let attempt = 1; attempt <= retries + 1; attempt++) {
    elapsed = saturate(elapsed + Math.min(duration, Math.max(allowed - elapsed, 0)));
    const decision = decide(policy, attempt, elapsed, (_, retry) => delayOf(retry, previous));
    if (typeof decision === "string") return [elapsed, attempt];
    previous = decision;
    elapsed = saturate(elapsed + decision);
  }
  return [Infinity, retries + 1];
}

/** Return how long calls take that fail every time, beside the longest. */
function describeMedian(median, worst, hasAttempts) {
  if (median === null) return worst === null ? "a call that fails every time goes on" : "";
  const counted = hasAttempts ? "" : "; attempts not counted";
  if (median.time >= worst * (1 - 1e-9) && worst !== null)
    return `so do all calls that fail every time${counted}`;
  const time = `${median.exact ? "" : "about "}${formatDuration(median.time)}`;
  return `half of the calls that fail every time take less than ${time}${counted}`;
}

/** Return the load that a simulation puts on a server: "16.5 times its normal load". */
function describePeak({ peak }) {
  const times = formatTenths(peak);
  return times === "1.0" ? "no more than its normal load" : `up to ${times} times its normal load`;
}
