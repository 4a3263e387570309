/*
 * What the limits of a policy leave of its schedule: its retries, the time
 * waited up to each of them, and where and why it ends.
 *
 * What retrykit.preview works out, by the rules of retrykit's decisions;
 * `attempt` is how long each attempt takes, in seconds. Pure.
 */

// Sums of delays and readings of clocks are off by a hair, in seconds.
const HAIR = 1e-6;
const MARGINS = { stop: 0, clip: -HAIR, overshoot: HAIR };

/**
 * Return the rows (retry, low, high, total_low, total_high) of a policy, the
 * soonest and the latest end ({retry, reason}; null if it goes on after the
 * last row), and the longest time until the last attempt of the rows has ended.
 */
function preview(policy, attempt, retries) {
  const shortest = pathOf(policy, attempt, retries, 0);
  const longest = pathOf(policy, attempt, retries, 1);
  const rows = rowsOf(policy, attempt, shortest.delays);
  const begins = rows.map((row) => row.total_high + row.retry * attempt);
  return {
    rows,
    soonest: endOf(longest),
    latest: endOf(shortest),
    worst: saturated(Math.max(0, ...begins) + attempt),
  };
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
function decide(
  { schedule, max_attempts, max_elapsed, deadline },
  attempt,
  elapsed,
  side,
) {
  if (max_attempts !== null && attempt >= max_attempts) return "max_attempts";
  if (max_elapsed !== null && elapsed >= max_elapsed + MARGINS[deadline])
    return "max_elapsed";
  const range = bounds(schedule, attempt);
  if (range === null) return "schedule";
  const delay = range[side];
  if (max_elapsed === null || elapsed + delay <= max_elapsed + HAIR) return delay;
  if (deadline === "overshoot") return delay;
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
function ending({ soonest, latest }, retries) {
  const beyond = `goes on beyond retry ${retries}, the last one shown`;
  if (soonest === null) return beyond;
  if (latest === null) {
    const first = `stops after retry ${soonest.retry} at the soonest`;
    return `${first}: ${soonest.reason}; or ${beyond}`;
  }
  const span = soonest.retry < latest.retry ? ` to ${latest.retry}` : "";
  const reasons = [...new Set([soonest.reason, latest.reason])];
  return `stops after retry ${soonest.retry}${span}: ${reasons.join(" or ")}`;
}
