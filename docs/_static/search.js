// Pagefind finds pages that have all words of a query: those that say nothing go.
const COMMON = new Set(
  `a after all an and any are at be between by can difference do does each every for from
  get have how i if in including instead is it its long longer me more most my need never of
  on only or our over python retrykit s should some than that the them then these they this
  to up use using want was what when where which who why will with without you your`.split(/\s+/),
);
// As in "after 30 seconds", and unlike 429.
const SMALL = /^\d{1,2}$/;

function significant(query) {
  const words = query.split(/\s+/).filter(Boolean);
  const kept = words.filter((word) => !COMMON.has(word.toLowerCase()) && !SMALL.test(word));
  return (kept.length > 0 ? kept : words).join(" ");
}

if (location.protocol === "file:") {
  document.getElementById("search-offline").hidden = false;
} else {
  const search = new PagefindUI({
    element: "#search",
    processTerm: significant,
    showImages: false,
    showSubResults: true,
  });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) search.triggerSearch(asked);
}
