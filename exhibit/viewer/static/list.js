// The list of questions: its lines arrive in blocks, only visible lines are drawn, and the chosen case opens beside it.

const list = byId("lines");
const search = byId("search");
const count = byId("count");
const panel = byId("case");
const RUNS = META.runs.length;
const MAIN = 0; // the facet that a line shows: the question's outcome, or how it changed
const DATASET = META.facets.findIndex((one) => one.name === "dataset");
const SIDES = META.facets.length - RUNS; // with several runs: the first facet that belongs to one run

let lines = []; // the lines of all questions, after they are unpacked
let matching = null; // the indexes of the matching lines; null: all lines
let active = 0; // the index, among the matching lines, of the line that the keyboard has selected
let current = -1; // the index of the open case

const facetOf = (line, facet) => line.values[facet];
const keyOf = (line) => `${facetOf(line, DATASET)}/${line.id}`;
const shownCount = () => (matching ? matching.length : lines.length);
const indexAt = (place) => (matching ? matching[place] : place);

function wordsOf(line) {
  const labels = Object.entries(line.labels).map(([name, value]) => `${name}:${value}`);
  const { values, id, question, file, error, found, answers } = line;
  line.words ??= [...values, id, question, file, error, ...found, ...answers, ...labels].join("\n").toLowerCase();
  return line.words;
}

// ---------------------------------------------------------------- drawing the visible lines

const rowHeight = () => parseFloat(getComputedStyle(list).getPropertyValue("--row"));
let drawing = false;

// questions about one document often begin with the same words, so a line shows the beginning and the end
const HEAD = 44;
const TAIL = 58;
function inBrief(text) {
  if (text.length <= HEAD + TAIL + 6) return text;
  const head = text.slice(0, HEAD).replace(/\s+\S*$/, "");
  const tail = text.slice(-TAIL).replace(/^\S*\s+/, "");
  return `${head} … ${tail}`;
}

const ofGold = (share) => (share === null ? "" : `${(100 * share).toFixed(0)}% of gold`);

function systemCell(line, run) {
  const outcome = facetOf(line, SIDES + run);
  return make("span", { class: "system", "data-name": META.runs[run] },
    outcome ? chip(outcome) : make("span", { class: "meta" }, "not asked"),
    make("span", { class: "meta" }, ofGold(line.found[run])),
    make("span", { class: "words" }, line.answers[run]));
}

function rowOf(place) {
  const index = indexAt(place);
  const line = lines[index];
  const row = make("div", {
    role: "option", id: `line-${place}`, class: "line", "aria-selected": String(index === current), "aria-posinset": place + 1,
    "aria-setsize": shownCount(), "data-place": place,
  });
  const goldText = SEVERAL ? "" : ofGold(line.found[0]);
  row.append(make("span", { class: "asked-in" },
    make("span", { class: "row-top" }, chip(facetOf(line, MAIN)), make("span", { class: "meta" }, keyOf(line), goldText ? ` · ${goldText}` : "")),
    make("span", { class: "question", title: line.question }, inBrief(line.question))));
  if (SEVERAL) row.append(...META.runs.map((_, run) => systemCell(line, run)));
  row.style.top = `${place * rowHeight()}px`;
  row.classList.toggle("active", place === active);
  return row;
}

function draw() {
  drawing = false;
  const height = rowHeight();
  const holder = list.firstElementChild;
  holder.style.height = `${shownCount() * height}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 3);
  const last = Math.min(shownCount(), Math.ceil((list.scrollTop + list.clientHeight) / height) + 3);
  holder.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, step) => rowOf(first + step)));
  if (shownCount() && active >= first && active < last) list.setAttribute("aria-activedescendant", `line-${active}`);
  else list.removeAttribute("aria-activedescendant");
}

function redraw() {
  if (!drawing) {
    drawing = true;
    requestAnimationFrame(draw);
  }
}

function reveal(place) {
  const height = rowHeight();
  const top = place * height;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
}

function move(place, { open = false } = {}) {
  if (!shownCount()) return;
  active = Math.max(0, Math.min(shownCount() - 1, place));
  reveal(active);
  draw();
  if (open || current >= 0) openCase(indexAt(active));
}

// ---------------------------------------------------------------- filters

const selects = META.facets.map((facet) => byId(`facet-${facet.name}`));

const brief = (words) => (words.length > 70 ? `${words.slice(0, 69)}…` : words);

function fillSelect(select, { values, counts }) {
  select.replaceChildren(make("option", { value: "" }, "all"),
    ...values.map((one, index) => make("option", { value: one }, `${brief(one)} (${number(counts[index])})`)));
}

const narrowed = () => search.value.trim() !== "" || selects.some((one) => one.value !== "");

// returns the lines that have all the words and the chosen values
function matched() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (index) => selects.every((one, facet) => one.value === "" || facetOf(lines[index], facet) === one.value)
    && words.every((word) => wordsOf(lines[index]).includes(word));
  return [...lines.keys()].filter(fits);
}

// returns the facet by which a button filters the list: the facet that it names, else the outcome
const facetPicked = (button) => Math.max(MAIN, META.facets.findIndex((one) => one.name === button.dataset.facet));

function showPicked() {
  for (const button of document.querySelectorAll("[data-pick]")) {
    button.setAttribute("aria-pressed", String(selects[facetPicked(button)].value === button.dataset.pick));
  }
}

function filter() {
  matching = narrowed() ? matched() : null;
  showPicked();
  active = Math.max(0, matching ? matching.indexOf(current) : current);
  list.scrollTop = 0;
  reveal(active);
  draw();
  const all = number(META.total);
  count.textContent = narrowed() ? `${number(matching.length)} of ${all} questions` : `${all} questions, ${SEVERAL ? "changes for the worse" : "unfavourable outcomes"} first`;
  byId("nothing").hidden = shownCount() > 0;
  list.hidden = !shownCount();
  byId("clear").hidden = !narrowed();
  writeAddress();
}

function clearFilters() {
  search.value = "";
  for (const select of selects) select.value = "";
  filter();
}

// ---------------------------------------------------------------- the address

// report.html#cuad/33?outcome=failed&q=notice opens a question in a filtered list; a colleague can open the same link
function filterWords() {
  const params = new URLSearchParams();
  if (search.value.trim()) params.set("q", search.value.trim());
  META.facets.forEach((facet, index) => { if (selects[index].value !== "") params.set(facet.name, selects[index].value); });
  return String(params);
}

function writeAddress() {
  const key = current >= 0 && lines[current] ? keyOf(lines[current]).split("/").map(encodeURIComponent).join("/") : "";
  const words = filterWords();
  const hash = key || words ? `#${key}${words ? `?${words}` : ""}` : "";
  if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname + location.search);
}

async function followAddress() {
  const [address, words] = location.hash.slice(1).split("?");
  let key = address;
  try { key = decodeURIComponent(address); } catch { /* the address is not from this page */ }
  if (words !== undefined) {
    const params = new URLSearchParams(words);
    search.value = params.get("q") ?? "";
    META.facets.forEach((facet, index) => { selects[index].value = params.get(facet.name) ?? ""; });
    filter();
  }
  if (!key.includes("/")) return;
  const index = lines.findIndex((line) => keyOf(line) === key);
  if (index < 0 || index === current) return;
  if (matching && !matching.includes(index)) clearFilters();
  active = matching ? matching.indexOf(index) : index;
  reveal(active);
  await openCase(index);
  byId("list").scrollIntoView({ block: "start" });
}

// ---------------------------------------------------------------- opening

const wide = window.matchMedia("(min-width: 900px)");
function settle() {
  document.body.classList.toggle("stacked", !wide.matches && !SEVERAL);
  list.style.setProperty("--runs", RUNS);
  list.style.setProperty("--row", SEVERAL ? (wide.matches ? "108px" : `${84 + 26 * RUNS}px`) : "84px");
  redraw();
}
let opening = 0;

function stepButton(words, step) {
  const place = matching ? matching.indexOf(current) : current;
  const there = place >= 0 && place + step >= 0 && place + step < shownCount();
  return make("button", { type: "button", class: "quiet", disabled: !there, click: () => move(place + step, { open: true }) }, words);
}

function caseHead(line, key) {
  return make("div", { class: "case-head" },
    make("div", { class: "which" }, chip(facetOf(line, MAIN)), make("span", { class: "meta" }, `${key} · ${number(current + 1)} of ${number(META.total)}`)),
    make("div", { class: "steps" }, make("button", { type: "button", class: "quiet back", click: toList }, "Back to the list"),
      stepButton("Previous", -1), stepButton("Next", 1)));
}

async function openCase(index, { focus = false } = {}) {
  current = index;
  opening += 1;
  const turn = opening;
  panel.setAttribute("aria-busy", "true");
  try {
    const found = await caseOf(index);
    const sheets = await sheetsOf(found);
    if (turn === opening) show(index, found, sheets, focus);
  } catch (error) {
    if (turn === opening) panel.replaceChildren(make("p", { class: "prose error" }, error.message));
  }
  if (turn === opening) panel.removeAttribute("aria-busy");
}

function show(index, found, sheets, focus) {
  const line = lines[index];
  const key = keyOf(line);
  const title = make("h3", { id: "case-title", tabindex: -1 }, found.question);
  const detail = make("article", { class: "case", "data-key": key, "aria-labelledby": "case-title" }, caseHead(line, key), title);
  if (SEVERAL) sideBySide(detail, found, sheets);
  else oneSide(detail, found, sheets);
  panel.replaceChildren(detail);
  writeAddress();
  document.body.classList.add("reading");
  draw();
  if (focus) title.focus({ preventScroll: true });
  if (focus || !wide.matches || SEVERAL || panel.getBoundingClientRect().top < 0) panel.scrollIntoView({ block: "start" });
}

function toList() {
  document.body.classList.remove("reading");
  draw();
  reveal(active);
  byId("list").scrollIntoView({ block: "start" });
  list.focus({ preventScroll: true });
}

function closeCase() {
  current = -1;
  opening += 1;
  panel.replaceChildren(byId("nothing-open").content.cloneNode(true));
  writeAddress();
  toList();
}
