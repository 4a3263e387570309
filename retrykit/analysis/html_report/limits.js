/*
 * What the limits of a policy leave of its schedule: its retries, the time
 * waited up to each of them, and where and why it ends.
 *
 * What retrykit.analysis.preview works out, by the rules of retrykit's decisions;
 * `attempt` is how long each attempt takes, in seconds. Pure.
 */

// Sums of delays and readings of clocks are off by a hair, in seconds.
const HAIR = 1e-6;
const MARGINS = { stop: 0, clip: -HAIR, overshoot: HAIR };

/**
 * Return the rows (retry, low, high, total_low, total_high) of a policy, the
 * soonest and the latest end ({retry, reason}; null if it goes on after the
 * last row), how long each attempt takes, and the longest time in all (null
 * where none is known).
 */
function preview(policy, attempt, retries) {
  const took = Math.min(attempt, timeoutOf(policy));
  const shortest = pathOf(policy, took, retries, 0);
  const longest = pathOf(policy, took, retries, 1);
  const rows = rowsOf(policy, took, shortest.delays);
  const [soonest, latest] = [endOf(longest), endOf(shortest)];
  const ended = isEnded(policy, soonest, latest);
  const worst = ended ? worstOf(policy, took, rows) : null;
  return { rows, soonest, latest, attempt: took, worst };
}

/** Return the longest time that an attempt may take. */
function timeoutOf(policy) {
  return policy.attempt_timeout ?? Infinity;
}

function isEnded({ max_elapsed, deadline }, soonest, latest) {
  if (soonest && latest) return true;
  // Shorter delays let a call go on, but no longer than it is allowed to.
  return soonest !== null && deadline !== "overshoot" && max_elapsed !== null;
}

/** Return the longest time in all, the last attempt included. */
function worstOf(policy, attempt, rows) {
  // Where nothing is said of attempts, they take as long as they may.
  if (!attempt && policy.attempt_timeout !== null) return latestOf(policy, rows);
  const begins = rows.map((row) => row.total_high + row.retry * attempt);
  return saturated(largest([0, ...begins]) + attempt);
}

/** Return when a call ends whose attempts take as long as they may. */
function latestOf({ max_elapsed, deadline, attempt_timeout }, rows) {
  const allowed = max_elapsed ?? Infinity;
  let begins = 0;
  for (const { high, total_low } of rows) {
    const ends = begins + attempt_timeout;
    begins = saturated(
      deadline === "overshoot"
        ? Math.min(ends, allowed) + high
        : Math.min(ends + high, Math.max(allowed, total_low)),
    );
  }
  const left = deadline === "stop" ? Math.max(allowed - begins, 0) : Infinity;
  return saturated(begins + Math.min(attempt_timeout, left));
}

/** Return the delays of a call, all shortest (0) or longest (1), and why it ends. */
function pathOf(policy, attempt, retries, side) {
  const delays = [];
  let elapsed = 0;
  for (;;) {
    const made = delays.length + 1;
    elapsed += attempt;
    const follows = decide(policy, made, elapsed, side);
    if (typeof follows === "string") return { delays, reason: follows };
    if (made > retries) return { delays, reason: null };
    delays.push(follows);
    elapsed += follows;
  }
}

/** Return the delay after a failed attempt, or the setting that ends the call. */
function decide(policy, attempt, elapsed, side) {
  const { schedule, max_attempts, max_elapsed, deadline } = policy;
  if (max_attempts !== null && attempt >= max_attempts) return "max_attempts";
  if (max_elapsed !== null && elapsed >= max_elapsed + MARGINS[deadline])
    return "max_elapsed";
  const range = bounds(schedule, attempt);
  if (range === null) return "schedule";
  const delay = range[side];
  if (max_elapsed === null || deadline === "overshoot") return delay;
  // An attempt whose time is bounded by the limit must start before it.
  const before = deadline === "stop" && policy.attempt_timeout !== null;
  if (elapsed + delay <= max_elapsed + (before ? -HAIR : HAIR)) return delay;
  return deadline === "clip" ? max_elapsed - elapsed : "max_elapsed";
}

function rowsOf(policy, attempt, delays) {
  const allowed = policy.max_elapsed ?? LONGEST;
  let [shortest, longest] = [0, 0];
  return delays.map((delay, place) => {
    const retry = place + 1;
    const [low, high] = bounds(policy.schedule, retry);
    // The attempts before it leave that much for the delays.
    const left = Math.max(allowed - retry * attempt, shortest);
    shortest = saturated(shortest + delay);
    longest =
      policy.deadline === "overshoot"
        ? saturated(Math.min(longest, left) + high)
        : Math.min(longest + high, Math.max(left, shortest));
    return { retry, low, high, total_low: shortest, total_high: longest };
  });
}

function endOf({ delays, reason }) {
  return reason && { retry: delays.length, reason };
}

/** Return the line that says how a policy ends. */
function ending({ soonest, latest, rows }) {
  const beyond = `goes on beyond retry ${rows.length}`;
  if (soonest === null) return beyond;
  if (latest === null) {
    const first = `stops after retry ${soonest.retry} at the soonest`;
    return `${first}: ${soonest.reason}; or ${beyond}`;
  }
  const span = soonest.retry < latest.retry ? ` to ${latest.retry}` : "";
  const reasons = [...new Set([soonest.reason, latest.reason])];
  return `stops after retry ${soonest.retry}${span}: ${reasons.join(" or ")}`;
}
