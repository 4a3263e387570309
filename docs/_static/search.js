// Pagefind finds pages that have all words of a query: those that say nothing go.
const COMMON = new Set(
  `a an and are be between by can difference do does for from get how i if in instead is it
  me my of on or python retrykit the to up use using want what when where which who why with
  without`.split(/\s+/),
);

function significant(query) {
  const words = query.split(/\s+/).filter(Boolean);
  const kept = words.filter((word) => !COMMON.has(word.toLowerCase()));
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
