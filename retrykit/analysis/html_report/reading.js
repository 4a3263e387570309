/*
 * Reading the chart retry by retry: with the mouse, or with the arrow keys.
 *
 * `lines()` and `view()` say what is on the chart, `place()` where; what is
 * read is shown beside the retry, and told to screen readers.
 */

/** Return {refresh}: let the chart in *frame* be read. */
function readingOf(frame, tooltip, told, { lines, view, place }) {
  const svg = frame.querySelector("svg");
  let retry = null;

  function read(wanted, aloud) {
    retry = wanted;
    refresh();
    if (aloud) told.textContent = retry === null ? "" : sentence();
  }

  function values() {
    return lines().map((line) => {
      const row = line.rows[retry - 1];
      return [line, row ? rangeTold(...shown(row, view())) : "no retry"];
    });
  }

  function sentence() {
    return `Retry ${retry}. ${values()
      .map(([line, value]) => `${line.name}: ${value}`)
      .join(". ")}`;
  }

  function refresh() {
    svg.querySelector(".cursor")?.remove();
    const { x, y, last, edge } = place();
    tooltip.hidden = retry === null;
    if (retry === null) return;
    retry = Math.min(retry, last);
    svg.append(cursor(x, y, edge));
    tooltip.replaceChildren(
      element("p", {}, `Retry ${retry}`),
      element(
        "table",
        {},
        ...values().map(([line, value]) =>
          element(
            "tr",
            {},
            element("td", {}, swatch(line.look)),
            element("th", { scope: "row" }, line.name),
            element("td", {}, value),
          ),
        ),
      ),
    );
    placeTooltip(x(retry), edge);
  }

  /** Put the tooltip beside a retry, where most of its points are not. */
  function placeTooltip(x, edge) {
    const [room, wide] = [frame.clientWidth, tooltip.offsetWidth];
    const right = x + 14 + wide <= room;
    const left = right ? x + 14 : Math.max(0, x - 14 - wide);
    const heights = [...svg.querySelectorAll(".cursor circle")].map(
      (c) => c.cy.baseVal.value,
    );
    const middle = (edge.top + edge.bottom) / 2;
    const above = heights.filter((height) => height < middle).length;
    const bottom = above * 2 > heights.length;
    const top = bottom ? edge.bottom - tooltip.offsetHeight - 8 : edge.top + 4;
    tooltip.style.left = `${Math.min(left, Math.max(0, room - wide))}px`;
    tooltip.style.top = `${top}px`;
  }

  function cursor(x, y, edge) {
    const points = lines().flatMap((line) => {
      const row = line.rows[retry - 1];
      const ends = row ? shown(row, view()) : [];
      return ends.map((end) =>
        drawn("circle", { class: colourOf(line.look), cx: x(retry), cy: y(end), r: 5 }),
      );
    });
    const line = drawn("path", { d: `M${x(retry)} ${edge.top}V${edge.bottom}` });
    return drawn("g", { class: "cursor" }, line, ...points);
  }

  function nearestRetry(event) {
    const { x, last } = place();
    const across = event.clientX - svg.getBoundingClientRect().left;
    const step = last > 1 ? x(2) - x(1) : 1;
    return Math.min(last, Math.max(1, Math.round((across - x(1)) / step) + 1));
  }

  frame.addEventListener("pointermove", (event) => read(nearestRetry(event), false));
  frame.addEventListener("pointerdown", (event) => read(nearestRetry(event), false));
  frame.addEventListener("pointerleave", () => read(null, false));
  frame.addEventListener("blur", () => read(null, true));
  frame.addEventListener("keydown", (event) => {
    const { last } = place();
    const now = retry ?? 0;
    const wanted = {
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      PageUp: now + 10,
      PageDown: now - 10,
      Home: 1,
      End: last,
    }[event.key];
    if (event.key === "Escape") read(null, true);
    if (wanted === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    read(Math.min(last, Math.max(1, wanted)), true);
  });
  return { refresh };
}
