// Handles keys, selects, buttons, column headers and changes of the address; then draws the page for the first time.

const help = byId("help");

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    const large = document.querySelector(".page.large button");
    if (large) large.click();
    else if (event.target === search && search.value) {
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
  } else if (event.key === "?") help.showModal();
}

META.facets.forEach((facet, index) => fillSelect(selects[index], facet));
panel.replaceChildren(byId("nothing-open").content.cloneNode(true));
document.querySelector(".line-head")?.style.setProperty("--runs", RUNS);

list.addEventListener("scroll", redraw, { passive: true });
list.addEventListener("click", (event) => {
  const row = event.target.closest("[data-place]");
  if (row) move(Number(row.dataset.place), { open: true });
});
window.addEventListener("resize", redraw);
wide.addEventListener("change", settle);
settle();
for (const control of selects) control.addEventListener("change", filter);
search.addEventListener("input", filter);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
for (const name of ["clear", "clear-all"]) byId(name).addEventListener("click", () => { clearFilters(); search.focus(); });
byId("help-open").addEventListener("click", () => help.showModal());
byId("help-close").addEventListener("click", () => help.close());
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", followAddress);
for (const pick of document.querySelectorAll("[data-pick]")) {
  pick.addEventListener("click", () => {
    const facet = facetPicked(pick);
    const again = selects[facet].value === pick.dataset.pick;
    selects[facet].value = again ? "" : pick.dataset.pick;
    if (current >= 0) closeCase();
    filter();
    if (again) return;
    byId("list").scrollIntoView();
    list.focus({ preventScroll: true });
  });
}

unpack(byId("packed").textContent).then(async (all) => {
  lines = all;
  const address = location.hash;
  filter();
  if (address !== location.hash) history.replaceState(null, "", address);
  await followAddress();
});
