/*
 * The cards at the top of the page: what one wants to know of each policy.
 */

/**
 * Return the card of a policy. `answers` are {median, result, reason, circumstances} as
 * last known, undefined at first; they wait for a simulation if `isPending`.
 */
function answerCard(policy, found, { answers, isPending, hasAttempts }) {
  const { worst } = found;
  const question = (name, asked, figure, ...notes) =>
    element(
      "div",
      { class: name },
      element("dt", {}, asked),
      element("dd", {}, ...figure),
      ...notes,
    );
  const longest = worst === null ? ["no limit"] : withExact(worst);
  return element(
    "article",
    { class: "card end", "data-name": policy.name, "aria-busy": String(isPending) },
    element("h3", {}, swatch(policy.look), policy.name),
    element(
      "dl",
      {},
      question(
        "gives-up",
        "When does it give up?",
        [describeGivingUp(policy, found)],
        note("ending", describeEnd(found)),
      ),
      question(
        "worst",
        "How long does a call take at worst?",
        longest,
        note("typical", answers ? describeMedian(answers.median, worst, hasAttempts) : "…"),
        note("basis", worst === null ? "" : basisOf(policy, found)),
      ),
      question("load", "What does it do to a server that is down?", ...loadAnswer(answers)),
    ),
    note("order", policy.stages && `Order: ${describeOrder(policy)}`),
    note("caveats", policy.caveats.length && `Notes: ${policy.caveats.join("; ")}.`),
  );
}

/** Return a line of small text, or null without a text. */
function note(name, text) {
  return text ? element("p", { class: `hint ${name}` }, text) : null;
}

/** Return the figure of the load, and the notes below it. */
function loadAnswer(answers) {
  if (!answers) return [["…"]];
  const { result, reason, circumstances } = answers;
  if (!result) return [["not simulated"], note("reason", reason)];
  return [
    [describePeak(result)],
    element("p", { class: outcomeClass(result) }, result.verdict),
    note("circumstances", circumstances),
  ];
}

/** Return the parts of an expression that a line should not break within. */
function unbroken(text) {
  const parts = text.split(/(?<=\))(?=\.)|(?<= [+|&] )/);
  return parts.map((part) => element("span", { class: "part" }, part));
}

/** Return the assumptions of the worst case. */
function basisOf(policy, { attempt }) {
  const duration = attempt || policy.attempt_timeout;
  const parts = [
    duration ? `with attempts of ${formatDuration(duration)}` : null,
    policy.has_other_delays ? "by the policy's own schedule" : null,
  ].filter(Boolean);
  return parts.length ? `Worst case: ${parts.join(", ")}.` : "";
}

/** Return the stages of a policy from the outermost to the call itself. */
function describeOrder({ stages, max_elapsed, max_attempts, limits }) {
  const all = [
    ...stages.outer,
    max_elapsed === null ? null : `max_elapsed=${formatDuration(max_elapsed)}`,
    max_attempts === 1 && limits !== "all"
      ? null
      : max_attempts === null
        ? "retry"
        : `retry max_attempts=${max_attempts}`,
    ...stages.inner,
    "call",
  ].filter((stage) => stage !== null);
  return `${all.join(" ( ")} ${")".repeat(all.length - 1)}`;
}

/** Return a readable duration, and an element with the exact seconds. */
function withExact(duration) {
  return [
    formatDuration(duration),
    element("span", { class: "exact" }, `${formatNumber(Number(duration.toPrecision(14)))} s`),
  ];
}
