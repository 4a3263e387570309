/*
 * Random numbers that equal Python's: streams of retrykit.simulate, which are
 * Mersenne Twisters, and the draws of delays, which are SplitMix64. Pure.
 *
 * Integers of 64 bits are pairs of 32 bits, high and low: BigInt would take 20 times
 * as long.
 */

const WORDS = 624;

/**
 * Return the `random` of a `random.Random`, whose seed is given as in `init_by_array`.
 *
 * Source: M. Matsumoto, T. Nishimura, mt19937ar.c, 2002.
 */
function mersenneTwister(key) {
  const state = new Uint32Array(WORDS);
  const mix = (index) => state[index - 1] ^ (state[index - 1] >>> 30);
  state[0] = 19650218;
  for (let i = 1; i < WORDS; i++) state[i] = Math.imul(1812433253, mix(i)) + i;
  let [i, j] = [1, 0];
  const advance = () => {
    if (++i < WORDS) return;
    state[0] = state[WORDS - 1];
    i = 1;
  };
  for (let step = Math.max(WORDS, key.length); step; step--) {
    state[i] = (state[i] ^ Math.imul(mix(i), 1664525)) + key[j] + j;
    j = (j + 1) % key.length;
    advance();
  }
  for (let step = WORDS - 1; step; step--) {
    state[i] = (state[i] ^ Math.imul(mix(i), 1566083941)) - i;
    advance();
  }
  state[0] = 0x80000000;
  let next = WORDS;

  function refill() {
    for (let at = 0; at < WORDS; at++) {
      const joined =
        (state[at] & 0x80000000) | (state[(at + 1) % WORDS] & 0x7fffffff);
      state[at] =
        state[(at + 397) % WORDS] ^ (joined >>> 1) ^ (joined & 1 && 0x9908b0df);
    }
    next = 0;
  }

  function word() {
    if (next === WORDS) refill();
    let y = state[next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  return () => {
    const high = word() >>> 5;
    return (high * 67108864 + (word() >>> 6)) / 9007199254740992;
  };
}

/** Return the words of a key that Python has written in hexadecimal digits. */
function keyOf(digits) {
  const words = [];
  for (let end = digits.length; end > 0; end -= 8)
    words.push(parseInt(digits.slice(Math.max(end - 8, 0), end), 16));
  return words;
}

/** Return the natural logarithm of a number, 0 < number <= 1, as `_draws.logarithm`. */
function logarithm(number) {
  let [fraction, exponent] = [number, 0];
  while (fraction < Math.SQRT1_2) [fraction, exponent] = [fraction * 2, exponent - 1];
  const s = (fraction - 1) / (fraction + 1);
  const square = s * s;
  let total = 0;
  for (let term = 23; term > 0; term -= 2) total = total * square + 1 / term;
  return exponent * 0.6931471805599453 + 2 * s * total;
}

/** Return the high 32 bits of the product of two integers of 32 bits. */
function highProduct(a, b) {
  const [a0, a1, b0, b1] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const other = a0 * b1 + (middle % 65536);
  return a1 * b1 + Math.floor(middle / 65536) + Math.floor(other / 65536);
}

const STEP = [0x9e3779b9, 0x7f4a7c15];

/** The random numbers of the retries of one call, as `CallRandom`. */
class CallDraws {
  /** Take the seed of the call, modulo 2 ** 64. */
  constructor(high, low) {
    [this.high, this.low] = [high, low];
  }

  /** Return a function that draws for a retry; `previous` draws for the one before. */
  of(retry, drawn = 0) {
    let number = drawn;
    const random = () => this.draw(retry, ++number);
    random.previous = () => this.of(retry - 1, number);
    return random;
  }

  /** Return the draw of that number, from 1, of a retry. */
  draw(retry, number) {
    return this.units(retry, number) * 2 ** -53;
  }

  /** Return the draw in units of 2 ** -53. */
  units(retry, number) {
    // seed + ((retry << 32) + number) * STEP
    const product = number * STEP[1];
    const low0 = this.low + (product >>> 0);
    let low = low0 >>> 0;
    let high =
      (this.high +
        Math.imul(number, STEP[0]) +
        Math.floor(product / 4294967296) +
        Math.imul(retry, STEP[1]) +
        (low0 >= 4294967296 ? 1 : 0)) |
      0;
    [low, high] = [low ^ ((high << 2) | (low >>> 30)), high ^ (high >>> 30)];
    high =
      (highProduct(low, 0x1ce4e5b9) +
        Math.imul(high, 0x1ce4e5b9) +
        Math.imul(low, 0xbf58476d)) |
      0;
    low = Math.imul(low, 0x1ce4e5b9);
    [low, high] = [low ^ ((high << 5) | (low >>> 27)), high ^ (high >>> 27)];
    high =
      (highProduct(low, 0x133111eb) +
        Math.imul(high, 0x133111eb) +
        Math.imul(low, 0x94d049bb)) |
      0;
    low = Math.imul(low, 0x133111eb);
    [low, high] = [low ^ ((high << 1) | (low >>> 31)), high ^ (high >>> 31)];
    return (high >>> 0) * 2097152 + (low >>> 11);
  }
}
