/*
 * The counts of a simulation and its result in words, as those of retrykit.simulate.
 * Times are in whole nanoseconds. Pure.
 */

const SECOND = 1e9;

// When the outage begins, in seconds.
const BEGIN = 10;

/** Counts of each second, as `_recorder.Recorder`. */
class Recorder {
  constructor(seconds) {
    this.end = seconds * SECOND;
    for (const name of ["calls", "load", "goodput", "given_up", "succeeded", "failed"])
      this[name] = new Uint32Array(seconds);
    this.last_failed = new Float64Array(seconds).fill(-1);
    this.retries = this.pending = 0;
  }

  begin(now) {
    if (now < this.end) this.calls[Math.floor(now / SECOND)]++;
  }

  send(now, first) {
    if (now >= this.end) return;
    this.load[Math.floor(now / SECOND)]++;
    this.pending++;
    if (!first) this.retries++;
  }

  finish(sent, succeeded) {
    if (sent >= this.end) return;
    const second = Math.floor(sent / SECOND);
    this.pending--;
    (succeeded ? this.succeeded : this.failed)[second]++;
    if (!succeeded && sent > this.last_failed[second]) this.last_failed[second] = sent;
  }

  succeed(now) {
    if (now < this.end) this.goodput[Math.floor(now / SECOND)]++;
  }

  giveUp(now) {
    if (now < this.end) this.given_up[Math.floor(now / SECOND)]++;
  }

  /** Return the time from one until attempts succeed again, or null. */
  recovery(since) {
    let row = 0;
    for (let second = Math.ceil(since / SECOND); second < this.load.length; second++) {
      const good = this.succeeded[second] * 5 >= this.failed[second] * 95;
      row = good ? row + 1 : 0;
      // Seconds without any attempt show nothing.
      if (row >= 5 && this.succeeded.slice(second - 4, second + 1).some(Boolean))
        return Math.max(largest(this.last_failed.slice(0, second - 3)) - since, 0);
    }
    return null;
  }

  /** Return the second in which attempts fail for the last time after one, or null. */
  lastRelapse(since) {
    for (let end = this.load.length; end >= Math.floor(since / SECOND) + 15; end--) {
      const succeeded = sum(this.succeeded.slice(end - 10, end));
      if (succeeded < sum(this.failed.slice(end - 10, end)) * 9) return end;
    }
    return null;
  }
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

/** Return the result of a simulation, with the names of Python's. */
function summarize(recorder, normal, end, horizon) {
  const { retries } = recorder;
  const [load, goodput] = [[...recorder.load], [...recorder.goodput]];
  const found = recorder.recovery(end);
  const recovery = found === null ? null : found / SECOND;
  const last = load.slice(-Math.ceil(0.25 * horizon));
  const final_load = sum(last) / last.length / normal;
  let outcome =
    recovery === null
      ? "does not recover"
      : recovery <= 0.75 * horizon
        ? "recovers"
        : "not decided";
  const again = outcome === "recovers" ? recorder.lastRelapse(end + found) : null;
  if (again === load.length) outcome = "fails again";
  let verdict = describeOutcome(outcome, recovery, horizon, final_load);
  if (again !== null && outcome === "recovers")
    verdict += `, and for good after ${durationInWords(again - end / SECOND)}`;
  const [calls, attempts] = [sum(recorder.calls), sum(load)];
  return {
    verdict,
    outcome,
    recovery,
    peak: largest(load.slice(BEGIN)) / normal,
    final_load,
    calls,
    succeeded: sum(goodput),
    given_up: sum(recorder.given_up),
    attempts,
    retries,
    amplification: calls ? attempts / calls : 1,
    load,
    goodput,
  };
}

function describeOutcome(outcome, recovery, horizon, final_load) {
  const watched = durationInWords(horizon);
  if (recovery === null)
    return `does not recover within ${watched}${describeLoad(final_load)}`;
  const text = recovery
    ? `recovers ${durationInWords(recovery)} after the outage`
    : "recovers at once";
  if (outcome === "fails again")
    return `${text}, but fails again${describeLoad(final_load)}`;
  if (outcome === "recovers") return text;
  return `not decided: ${text}, which is near the horizon of ${watched}`;
}

function describeLoad(final_load) {
  const shown = formatTenths(final_load);
  return shown === "1.0" ? ", at its normal load" : `: ${shown} times its load`;
}

/** Format a duration as part of a sentence, as `durations.duration_in_words`. */
function durationInWords(duration) {
  const parts = [...formatDuration(duration).matchAll(/([0-9.e+]+)([a-z]+)/g)];
  return parts.map(([, n, unit]) => `${n} ${unit === "m" ? "min" : unit}`).join(" ");
}

/** Format a number with one decimal, half to even, as Python. */
function formatTenths(x) {
  const isHalf = Number.isInteger(4 * x) && !Number.isInteger(2 * x);
  return (isHalf ? halfEven(10 * x) / 10 : x).toFixed(1);
}
