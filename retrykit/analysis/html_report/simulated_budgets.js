/*
 * Retry budgets in virtual time, each the budget of one process, as those of
 * retrykit.budgets. Pure.
 *
 * A budget is made from the settings of the policy's, and from `now()`, which returns
 * the time in seconds. `failed(first, retryable)`, `withdraw(kind)` and
 * `deposit(cost)` are those of Python; errors are known by the kind of the failure.
 */

const BUDGETS = {
  token_bucket: ({ capacity, costs, reward, refunds }) => {
    let tokens = capacity;
    return {
      failed() {},
      withdraw(kind) {
        if (tokens < costs[kind]) return null;
        tokens -= costs[kind];
        return costs[kind];
      },
      deposit(cost) {
        const gain = refunds ? (cost ?? reward) : reward;
        tokens = Math.min(tokens + gain, capacity);
      },
    };
  },

  throttle: ({ full, gain }) => {
    let left = full;
    return {
      failed(_first, retryable) {
        if (retryable) left = Math.max(left - 1000, 0);
      },
      withdraw: () => (2 * left > full ? 0 : null),
      deposit() {
        left = Math.min(left + gain, full);
      },
    };
  },

  fleet_budget: ({ retry, gain, full, recent, late }, now) => {
    let [left, succeeded] = [full, -Infinity];
    return {
      failed() {},
      withdraw(kind) {
        if (late[kind] && now() - succeeded >= recent) return null;
        if (left < retry) return null;
        left -= retry;
        return 1;
      },
      deposit() {
        succeeded = now();
        left = Math.min(left + gain, full);
      },
    };
  },

  ratio_budget: ({ retry, gain, least, width }, now) => {
    const slots = Array(10).fill(0);
    let [filled, past, index] = [0, least, 0];
    function turn() {
      const current = floorDivide(now(), width);
      if (current === index) return;
      const turns = Math.min(current - index, slots.length + 1);
      for (let step = 0; step < turns; step++) {
        slots.shift();
        slots.push(filled);
        filled = 0;
      }
      past = least + slots.reduce((a, b) => a + b);
      index = current;
    }
    function deposit(cost) {
      if (cost !== null) return;
      turn();
      filled += gain;
    }
    return {
      failed(first) {
        if (first) deposit(null);
      },
      withdraw() {
        turn();
        if (past + filled < retry) return null;
        filled -= retry;
        return 1;
      },
      deposit,
    };
  },
};

/** Return x // y of two floats, as Python. */
function floorDivide(x, y) {
  // The quotient of x and y may be rounded up to an integer.
  const quotient = (x - (x % y)) / y;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}
