/*
 * The effect of the limits of a policy: its retries, the total delay up to each, and
 * where and why it ends.
 *
 * Pure, and equivalent to retrykit.analysis.preview and retrykit._core.decision.
 * `attempt` is how long each attempt takes, in seconds.
 */

// Tolerance for floating-point error in clock arithmetic, in seconds.
const EPSILON = 1e-6;
const MARGINS = { stop: 0, clip: -EPSILON, overshoot: EPSILON };

/**
 * Return the rows (retry, low, high, total_low, total_high) of a policy, its earliest
 * and latest end ({retry, reason}; null if it goes on after the last row), how long
 * each attempt takes, and the longest total time (null without a bound).
 */
function preview(policy, attempt, retries) {
  const duration = Math.min(attempt, policy.attempt_timeout ?? Infinity);
  const shortest = pathOf(policy, duration, retries, 0);
  const longest = pathOf(policy, duration, retries, 1);
  const rows = rowsOf(policy, duration, shortest.delays);
  const [earliest, latest] = [endOf(longest), endOf(shortest)];
  const bounded = isBounded(policy, earliest, latest);
  const worst = bounded ? worstOf(policy, duration, rows) : null;
  return { rows, earliest, latest, attempt: duration, worst };
}


function isBounded({ max_elapsed, deadline }, earliest, latest) {
  if (earliest && latest) return true;
  // Shorter delays let a call go on, but not beyond max_elapsed.
  return earliest !== null && deadline !== "overshoot" && max_elapsed !== null;
}

/** Return the longest total time, including the last attempt. */
function worstOf(policy, attempt, rows) {
  // Attempts of unknown duration are assumed to time out.
  if (!attempt && policy.attempt_timeout !== null) return latestOf(policy, rows);
  const begins = rows.map((row) => row.total_high + row.retry * attempt);
  return saturate(largest([0, ...begins]) + attempt);
}

/** Return the latest end of a call whose attempts all time out. */
function latestOf(policy, rows) {
  const { deadline, attempt_timeout } = policy;
  let begins = 0;
  for (const { retry, high, total_low } of rows) {
    const allowed = allowedAt(policy, retry);
    const ends = begins + attempt_timeout;
    begins = saturate(
      deadline === "overshoot"
        ? Math.min(ends, allowed) + high
        : Math.min(ends + high, Math.max(allowed, total_low)),
    );
  }
  const shortened = deadline === "stop" && policy.limits !== "all";
  const allowed = allowedAt(policy, rows.length + 1);
  const timeLeft = shortened ? Math.max(allowed - begins, 0) : Infinity;
  return saturate(begins + Math.min(attempt_timeout, timeLeft));
}

/** Return the shortest (0) or longest (1) delays of a call, and why it ends. */
function pathOf(policy, attempt, retries, side) {
  const delays = [];
  const endOfRange = (schedule, retry) => bounds(schedule, retry)?.[side] ?? null;
  let elapsed = 0;
  for (;;) {
    const number = delays.length + 1;
    elapsed += attempt;
    const decision = decide(policy, number, elapsed, endOfRange);
    if (typeof decision === "string") return { delays, reason: decision };
    if (number > retries) return { delays, reason: null };
    delays.push(decision);
    elapsed += decision;
  }
}

/**
 * Return the delay after a failed attempt, or the setting that ends the call.
 * `delayOf(schedule, retry)` is the delay by the schedule; null if it has ended.
 */
function decide(policy, attempt, elapsed, delayOf) {
  const { schedule, limits, max_attempts, max_elapsed, deadline } = policy;
  const joined = limits === "all" && max_elapsed !== null;
  if (!joined && max_attempts !== null && attempt >= max_attempts)
    return "max_attempts";
  const allowed = allowedAt(policy, attempt);
  if (allowed !== Infinity && elapsed >= allowed + MARGINS[deadline])
    return "max_elapsed";
  const delay = delayOf(schedule, attempt);
  if (delay === null) return "schedule";
  if (allowed === Infinity || deadline === "overshoot") return delay;
  // An attempt with a timeout must start before the limit.
  const before = deadline === "stop" && policy.attempt_timeout !== null;
  if (elapsed + delay <= allowed + (before ? -EPSILON : EPSILON)) return delay;
  return deadline === "clip" ? allowed - elapsed : "max_elapsed";
}

/** Return the time limit of a retry; joined with attempts, once they are used. */
function allowedAt({ limits, max_attempts, max_elapsed }, retry) {
  const joined = limits === "all" && max_attempts !== null;
  if (max_elapsed === null || (joined && retry < max_attempts)) return Infinity;
  return max_elapsed;
}

function rowsOf(policy, attempt, delays) {
  let [shortest, longest] = [0, 0];
  return delays.map((delay, index) => {
    const retry = index + 1;
    const allowed = Math.min(allowedAt(policy, retry), LONGEST);
    const [low, high] = bounds(policy.schedule, retry);
    const timeLeft = Math.max(allowed - retry * attempt, shortest);
    shortest = saturate(shortest + delay);
    longest =
      policy.deadline === "overshoot"
        ? saturate(Math.min(longest, timeLeft) + high)
        : Math.min(longest + high, Math.max(timeLeft, shortest));
    return { retry, low, high, total_low: shortest, total_high: longest };
  });
}

function endOf({ delays, reason }) {
  return reason && { retry: delays.length, reason };
}

/** Describe how a policy ends. */
function describeEnd({ earliest, latest, rows }) {
  const beyond = `goes on beyond retry ${rows.length}`;
  if (earliest === null) return beyond;
  if (latest === null) {
    const first = `stops after retry ${earliest.retry} at the earliest`;
    return `${first}: ${earliest.reason}; or ${beyond}`;
  }
  const [first, last] = [earliest.retry, latest.retry];
  const span = first < last ? `${first} to ${last}` : last;
  const reasons = [...new Set([earliest.reason, latest.reason])];
  const ends = last ? `stops after retry ${span}` : "never retries";
  return `${ends}: ${reasons.join(" or ")}`;
}
