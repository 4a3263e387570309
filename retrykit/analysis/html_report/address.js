/*
 * The policies of the page as text in its address, and back. Pure.
 *
 * The text is readable: `policy=zizq&schedule=exponential(0.1)&max_attempts=5`, with the
 * names and values of `Policy.to_dict`. Settings that the page cannot change are in it,
 * and must be the same when it is read.
 */

const EDITED = {
  schedule: {
    write: ({ schedule }) => expression(schedule),
    read: (text) => parseSchedule(text),
  },
  max_attempts: limitInAddress("max_attempts"),
  max_elapsed: limitInAddress("max_elapsed"),
  deadline: {
    write: ({ deadline }) => deadline,
    read: (text) =>
      Object.hasOwn(MARGINS, text)
        ? text
        : reject("deadline", `one of ${Object.keys(MARGINS).join(", ")}`, stringRepr(text)),
  },
};

function limitInAddress(name) {
  return {
    write: (policy) =>
      policy[name] === null ? "unlimited" : SETTINGS[name].edit(policy[name]),
    read: (text) => (text === "unlimited" ? null : SETTINGS[name].read(name, text)),
  };
}

/** Return the address of policies, without the `#`. */
function addressOf(policies, attempt) {
  const parts = attempt ? [["attempt", SETTINGS.attempt.edit(attempt)]] : [];
  for (const policy of policies) {
    parts.push(["policy", policy.name]);
    for (const [name, { write }] of Object.entries(EDITED))
      parts.push([name, write(policy)]);
    parts.push(...fixedSettings(policy));
  }
  return parts.map((part) => part.map(readablyEncoded).join("=")).join("&");
}

/** Return the [name, value] of each setting that the page cannot change. */
function fixedSettings({ toml }) {
  return toml.settings.map((line) => {
    const end = line.indexOf(" = ");
    return [line.slice(0, end), line.slice(end + 3)];
  });
}

/** Encode text for an address, and leave what an address may contain. */
function readablyEncoded(text) {
  return encodeURIComponent(text).replace(/%(2C|2F|3A|5B|5D|7C)/g, decodeURIComponent);
}

/**
 * Return {policies, attempt} of an address; what is not in it is as given. Throws
 * InvalidInput, which names what cannot be read.
 */
function readAddress(text, policies, attempt) {
  const found = [...policies];
  let [index, fixed, isWhole] = [0, {}, false];
  const close = () => checkFixed(policies[index], fixed, isWhole);
  for (const [name, value] of pairsOf(text)) {
    if (name === "attempt") {
      attempt = SETTINGS.attempt.read(name, value);
    } else if (name === "policy") {
      close();
      [fixed, isWhole] = [{}, true];
      index = policies.findIndex((policy) => policy.name === value);
      const names = policies.map((policy) => stringRepr(policy.name)).join(", ");
      if (index < 0) reject(name, `one of ${names}, which are on this page`, stringRepr(value));
    } else if (Object.hasOwn(EDITED, name)) {
      found[index] = { ...found[index], [name]: EDITED[name].read(value) };
    } else {
      fixed[name] = value;
    }
  }
  close();
  return { policies: found.map((each, place) => adapt(each, policies[place])), attempt };
}

function pairsOf(text) {
  return text.split("&").map((part) => {
    const end = part.indexOf("=");
    if (end < 1) reject("each part", "name=value", stringRepr(part));
    try {
      return [part.slice(0, end), part.slice(end + 1)].map(decodeURIComponent);
    } catch {
      return reject(part.slice(0, end), "percent-encoded text", stringRepr(part));
    }
  });
}

/** Raise if an address has other values of the settings that the page cannot change. */
function checkFixed(policy, given, isWhole) {
  const own = new Map(fixedSettings(policy));
  const names = [...Object.keys(given), ...(isWhole ? own.keys() : [])];
  const name = names.find((each) => own.get(each) !== given[each]);
  const suggestion = `the page changes ${Object.keys(EDITED).join(", ")} and attempt`;
  if (name !== undefined)
    reject(name, own.get(name) ?? "left out", given[name] ?? "nothing", suggestion);
}

/** Return a policy, without its preset if that cannot have made it. */
function adapt(policy, before) {
  const hasShape = policy.preset && sameShape(policy.schedule, before.schedule);
  const isLimited = (name) => policy[name] !== null || !isParameter(policy, name);
  const fits = hasShape && isLimited("max_attempts") && isLimited("max_elapsed");
  return fits ? policy : { ...policy, preset: null };
}

/** Return whether schedules differ in their numbers alone. */
function sameShape(one, other) {
  if (!one?.kind || !other?.kind) return (one === null) === (other === null) && !other?.kind;
  return (
    one.kind === other.kind &&
    Object.keys(other).every((name) => name === "kind" || sameShape(one[name], other[name]))
  );
}
