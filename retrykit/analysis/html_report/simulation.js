/*
 * What the clients of a server do to it after an outage, as retrykit.simulate computes
 * it: to the digit, since times are whole nanoseconds, below 2 ** 53, and the draws are
 * the same. Pure.
 *
 * The server has one slot, and serves each request in its turn. So the end of an attempt
 * is known when it is sent, and is its only event.
 */

const NETWORK = 1e6;
const CAPACITY = 100;

// How an attempt fails, as in retrykit.simulate._failures.
const [TIMED_OUT, REFUSED, FAILED] = [0, 1, 2];

/** Return a time in whole nanoseconds. */
function nanoseconds(seconds) {
  const century = 3155760000;
  return halfEven(Math.min(seconds, century) * SECOND);
}

/** Calls by the time of their next event, which is never before that of the last one. */
class Lane {
  constructor() {
    [this.times, this.calls, this.head, this.time] = [[], [], 0, Infinity];
  }

  push(time, call) {
    this.times.push(time);
    this.calls.push(call);
    if (this.time === Infinity) this.time = time;
  }

  pop() {
    const call = this.calls[this.head++];
    if (this.head > 1024 && this.head * 2 > this.calls.length) {
      this.times = this.times.slice(this.head);
      this.calls = this.calls.slice(this.head);
      this.head = 0;
    }
    this.time = this.head < this.times.length ? this.times[this.head] : Infinity;
    return call;
  }
}

/** Calls by the time of their next event, in any order: a binary heap. */
class Heap {
  constructor() {
    [this.times, this.calls, this.time] = [[], [], Infinity];
  }

  push(time, call) {
    const { times, calls } = this;
    let index = times.length;
    while (index) {
      const parent = (index - 1) >> 1;
      if (times[parent] <= time) break;
      times[index] = times[parent];
      calls[index] = calls[parent];
      index = parent;
    }
    times[index] = time;
    calls[index] = call;
    this.time = times[0];
  }

  pop() {
    const { times, calls } = this;
    const [first, time, call] = [calls[0], times.pop(), calls.pop()];
    const size = times.length;
    let index = 0;
    for (let child = 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && times[child + 1] < times[child]) child++;
      if (times[child] >= time) break;
      times[index] = times[child];
      calls[index] = calls[child];
      index = child;
    }
    if (size) [times[index], calls[index]] = [time, call];
    this.time = size ? times[0] : Infinity;
    return first;
  }
}

/** Clients and their server, while the simulation runs. */
class Fleet {
  // Fields, since numbers in variables of closures are allocated at each change.
  constructor(policy, settings, keys) {
    const { load, kind, duration, processes, horizon } = settings;
    const { retried, budget, seed } = policy.simulation;
    Object.assign(this, { policy, kind, processes, retried, budget, seed });
    this.rate = (load / 100) * CAPACITY;
    this.gap = nanoseconds(1 / this.rate);
    this.service = nanoseconds(1 / CAPACITY);
    this.timeout = nanoseconds(policy.attempt_timeout ?? settings.timeout);
    this.allowed = timeLimit(policy);
    this.begin = nanoseconds(BEGIN);
    this.end = this.begin + nanoseconds(duration);
    this.recorder = new Recorder(Math.ceil(BEGIN + duration + horizon));
    this.arrivals = mersenneTwister(keys.arrivals);
    this.dealt = mersenneTwister(keys.processes);
    this.nextSeed = Math.floor(mersenneTwister(keys.delays)() * 2 ** 46) * 64;
    const delayOf = drawnDelays(policy.schedule);
    this.drawDelay = (_schedule, retry) =>
      delayOf(retry, this.call.delay, this.call.draws);
    this.seconds = () => this.now / SECOND;
    this.budgets = [];
    [this.now, this.freeAt, this.nextArrival, this.call] = [0, 0, 0, null];
    [this.successes, this.timeouts, this.failures] = [1, 2, 3].map(() => new Lane());
    [this.earlyTimeouts, this.retries] = [new Heap(), new Heap()];
    this.failure = kind === "refuse" ? REFUSED : FAILED;
  }

  /** Run to the end; return whether that took at most so many events. */
  run(most) {
    const { recorder } = this;
    this.arriveLater();
    // Attempts that count may end later.
    for (let events = 0; this.now < recorder.end || recorder.pending; events++) {
      if (events > most) return false;
      this.next();
    }
    return true;
  }

  next() {
    const { nextArrival, successes, timeouts, failures, earlyTimeouts, retries } = this;
    const failed = Math.min(timeouts.time, failures.time, earlyTimeouts.time);
    const now = Math.min(nextArrival, successes.time, failed, retries.time);
    this.now = now;
    if (nextArrival === now) {
      this.arrive();
    } else if (successes.time === now) {
      this.call = successes.pop();
      this.succeed();
    } else if (failed === now) {
      const refused = failures.time === now;
      const lane = refused ? failures : timeouts.time === now ? timeouts : earlyTimeouts;
      this.call = lane.pop();
      this.fail(refused ? this.failure : TIMED_OUT);
    } else {
      this.call = retries.pop();
      this.send();
    }
  }

  arriveLater() {
    const time = halfEven(-logarithm(1 - this.arrivals()) * this.gap);
    this.nextArrival = this.now + time;
  }

  arrive() {
    this.arriveLater();
    const index = Math.min(Math.floor(this.dealt() * this.processes), this.processes - 1);
    const seed = this.nextSeed++;
    const draws = this.seed
      ? new CallDraws(...this.seed)
      : new CallDraws(Math.floor(seed / 4294967296), seed >>> 0);
    this.recorder.begin(this.now);
    const budget = this.budget && this.budgetOf(index);
    const none = { attempt: 0, cost: null, delay: null };
    this.call = { draws, budget, began: this.now, sent: this.now, ...none };
    this.send();
  }

  budgetOf(index) {
    const { budget, budgets } = this;
    return (budgets[index] ??= BUDGETS[budget.kind](budget, this.seconds));
  }

  /** Send the next attempt of the call, and find out how and when it ends. */
  send() {
    const { call, now, begin, end, kind } = this;
    call.attempt++;
    call.sent = now;
    this.recorder.send(now, call.attempt === 1);
    const left = Math.max(call.began + this.allowed - now, 0);
    const isEarly = left < this.timeout;
    const deadline = now + (isEarly ? left : this.timeout);
    const received = now + NETWORK;
    let [ends, lane] = [received, this.failures];
    if (kind === "hang" || received < begin || received >= end) {
      let started = Math.max(received, this.freeAt);
      if (kind !== "error" && begin <= started && started < end) started = end;
      ends = this.freeAt = started + this.service;
      lane = this.successes;
    }
    if (ends < deadline) lane.push(ends, call);
    else (isEarly ? this.earlyTimeouts : this.timeouts).push(deadline, call);
  }

  succeed() {
    const { call, recorder } = this;
    recorder.finish(call.sent, true);
    call.budget?.deposit(call.cost);
    recorder.succeed(this.now);
  }

  fail(failure) {
    const { call, recorder, now } = this;
    recorder.finish(call.sent, false);
    const delay = this.delayAfter(failure);
    if (delay === null) recorder.giveUp(now);
    else this.retries.push(now + nanoseconds(delay), call);
  }

  /** Return the delay before the next attempt, or null; pay for it. */
  delayAfter(failure) {
    const { call, policy } = this;
    const elapsed = (this.now - call.began) / SECOND;
    const decision = this.retried[failure]
      ? decide(policy, call.attempt, elapsed, this.drawDelay)
      : "not retried";
    const stops = typeof decision === "string";
    if (!stops) call.delay = decision;
    if (!call.budget) return stops ? null : decision;
    call.budget.failed(call.attempt === 1, this.retried[failure]);
    const cost = stops ? null : call.budget.withdraw(failure);
    if (cost === null) return null;
    call.cost = cost;
    return decision;
  }
}

/**
 * Simulate an outage; return the result, or null if it takes more than *most* events.
 *
 * `policy` is as on the page. `settings` are the load in percent, the kind and the
 * duration of the outage, the number of processes, the timeout and the horizon, in
 * seconds. `keys` are those of the streams.
 */
function simulate(policy, settings, keys, most = Infinity) {
  const fleet = new Fleet(policy, settings, keys);
  if (!fleet.run(most)) return null;
  return summarize(fleet.recorder, fleet.rate, fleet.end, settings.horizon);
}

/** Return the time that shortens the attempts of a call, in nanoseconds. */
function timeLimit({ attempt_timeout, max_elapsed, deadline, limits }) {
  const shortens = deadline === "stop" && limits === "any";
  return shortens && attempt_timeout !== null && max_elapsed !== null
    ? nanoseconds(max_elapsed)
    : Infinity;
}
