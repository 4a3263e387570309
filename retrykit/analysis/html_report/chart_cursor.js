/*
 * The cursor on the chart: moved with the mouse or the arrow keys, it shows a tooltip
 * with the delays of one retry, which screen readers announce.
 *
 * `lines()` and `view()` return the state of the chart, and `geometry()` the result of
 * `drawChart`.
 */

/** Attach a cursor to the chart in *frame*; return {refresh}. */
function chartCursor(frame, tooltip, status, { lines, view, geometry }) {
  const svg = frame.querySelector("svg");
  let retry = null;

  function select(wanted, announce) {
    retry = wanted;
    refresh();
    if (announce) status.textContent = retry === null ? "" : sentence();
  }

  function values() {
    return lines().map((line) => {
      const row = line.rows[retry - 1];
      return [line, row ? readableRange(...rowBounds(row, view())) : "no retry"];
    });
  }

  function sentence() {
    return `Retry ${retry}. ${values()
      .map(([line, value]) => `${line.name}: ${value}`)
      .join(". ")}`;
  }

  function refresh() {
    svg.querySelector(".cursor")?.remove();
    const { x, y, last, edge } = geometry();
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

  /** Put the tooltip beside a retry, where it covers few points. */
  function placeTooltip(x, edge) {
    const [available, width] = [frame.clientWidth, tooltip.offsetWidth];
    const fitsRight = x + 14 + width <= available;
    const left = fitsRight ? x + 14 : Math.max(0, x - 14 - width);
    const heights = [...svg.querySelectorAll(".cursor circle")].map(
      (c) => c.cy.baseVal.value,
    );
    const middle = (edge.top + edge.bottom) / 2;
    const above = heights.filter((height) => height < middle).length;
    const bottom = above * 2 > heights.length;
    const top = bottom ? edge.bottom - tooltip.offsetHeight - 8 : edge.top + 4;
    tooltip.style.left = `${Math.min(left, Math.max(0, available - width))}px`;
    tooltip.style.top = `${top}px`;
  }

  function cursor(x, y, edge) {
    const points = lines().flatMap((line) => {
      const row = line.rows[retry - 1];
      const ends = row ? rowBounds(row, view()) : [];
      return ends.map((end) =>
        svgElement("circle", { class: colorClass(line.look), cx: x(retry), cy: y(end), r: 5 }),
      );
    });
    const line = svgElement("path", { d: `M${x(retry)} ${edge.top}V${edge.bottom}` });
    return svgElement("g", { class: "cursor" }, line, ...points);
  }

  function nearestRetry(event) {
    const { x, last } = geometry();
    const pointerX = event.clientX - svg.getBoundingClientRect().left;
    const step = last > 1 ? x(2) - x(1) : 1;
    return Math.min(last, Math.max(1, Math.round((pointerX - x(1)) / step) + 1));
  }

  frame.addEventListener("pointermove", (event) => select(nearestRetry(event), false));
  frame.addEventListener("pointerdown", (event) => select(nearestRetry(event), false));
  frame.addEventListener("pointerleave", () => select(null, false));
  frame.addEventListener("blur", () => select(null, true));
  frame.addEventListener("keydown", (event) => {
    const { last } = geometry();
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
    if (event.key === "Escape") select(null, true);
    if (wanted === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    select(Math.min(last, Math.max(1, wanted)), true);
  });
  return { refresh };
}
