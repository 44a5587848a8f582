function findRuns() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll(".runs tbody tr")];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  const left = rows.filter((row) => !row.hidden).length;
  byId("found").textContent = words.length ? `${left} of ${rows.length} runs` : "";
}

function pickSeries() {
  const wanted = byId("dataset").value;
  for (const one of document.querySelectorAll(".series")) {
    one.hidden = Boolean(wanted) && one.dataset.series !== wanted;
  }
}

function showTarget() {
  // a run that the search has hidden is shown when a line leads to it
  const row = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (row && row.hidden) {
    byId("find").value = "";
    findRuns();
    row.scrollIntoView();
  }
}

byId("find").addEventListener("input", findRuns);
if (byId("dataset")) byId("dataset").addEventListener("change", pickSeries);
addEventListener("hashchange", showTarget);
addEventListener("click", (event) => {
  // a point leads to its run; whoever cannot point reads the same in the table
  const dot = event.target.closest("circle[data-run]");
  if (dot) location.hash = `run-${dot.dataset.run}`;
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    byId("find").focus();
  }
});
