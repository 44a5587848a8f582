// Hands on it: keys, selects, buttons and the address; then the first drawing.

const help = byId("help");

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    if (event.target === search && search.value) {
      search.value = "";
      filter();
    } else if (typing) list.focus();
    else if (current >= 0) closeCase();
    return;
  }
  if (event.key === "Enter" && event.target === search) {
    event.preventDefault();
    list.focus();
    return;
  }
  if (typing) return;
  const page = Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
  const inList = event.target === list;
  const steps = { j: 1, k: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity } : {}) };
  if (event.key in steps) {
    event.preventDefault();
    const fresh = current < 0 && document.activeElement !== list;
    list.focus({ preventScroll: true });
    move(fresh ? active : active + steps[event.key]);
  } else if (event.key === "Enter" && inList && shownCount()) {
    event.preventDefault();
    openCase(indexAt(active), { focus: true });
  } else if (event.key === "/") {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "c" && current >= 0) copyLink();
  else if (event.key === "?") help.showModal();
}

META.facets.forEach((facet, index) => options(selects[index], "all", facet.values, facet.counts));
label.replaceChildren(make("option", { value: "" }, "any"), ...META.labels.map((one, index) => make("option", { value: String(index) }, one.title)));
fillValues();
panel.replaceChildren(byId("nothing-open").content.cloneNode(true));

list.addEventListener("scroll", redraw, { passive: true });
list.addEventListener("click", (event) => {
  const row = event.target.closest("[data-place]");
  if (row) move(Number(row.dataset.place), { open: true });
});
window.addEventListener("resize", redraw);
wide.addEventListener("change", settle);
settle();
label.addEventListener("change", fillValues);
for (const control of [...selects, label, value]) control.addEventListener("change", filter);
search.addEventListener("input", filter);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("clear").addEventListener("click", () => { clearFilters(); search.focus(); });
byId("help-open").addEventListener("click", () => help.showModal());
byId("help-close").addEventListener("click", () => help.close());
for (const kind of ["csv", "jsonl"]) byId(`export-${kind}`).addEventListener("click", () => exportShown(kind));
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", followHash);
for (const pick of document.querySelectorAll("[data-pick]")) {
  pick.addEventListener("click", () => {
    const place = META.facets[MAIN].values.indexOf(pick.dataset.pick);
    for (const select of [...selects, label]) select.value = "";
    search.value = "";
    fillValues();
    selects[MAIN].value = place < 0 ? "" : String(place);
    filter();
    byId("list").scrollIntoView();
    list.focus({ preventScroll: true });
  });
}

need(0).then(async () => {
  filter();
  await followHash();
  // after what is seen, the rest of the list
  requestAnimationFrame(() => setTimeout(allLines, 50));
});
