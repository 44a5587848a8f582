// The list: lines arrive in blocks, only those in sight are drawn, and the case picked opens beside it.

const list = byId("lines");
const search = byId("search");
const count = byId("count");
const panel = byId("case");
const FACETS = META.facets.length;
const FIELD = Object.fromEntries(META.fields.map((name, index) => [name, FACETS + index]));
const LABELS = FACETS + META.fields.length;
const MAIN = PAIR ? 0 : 1; // the facet that a line shows: how it changed, or its verdict
const DATASET = META.facets.findIndex((one) => one.name === "dataset");

const lines = new Array(META.total);
const haystack = new Array(META.total);
let arrivedLines = 0;
let matching = null; // places in the list; null: all
let active = 0; // the place in what matches that the keyboard is at
let current = -1; // the case that is open

const facetOf = (line, facet) => META.facets[facet].values[line[facet]] ?? "";
const keyOf = (line) => `${facetOf(line, DATASET)}/${line[FIELD.id]}`;
const shownCount = () => (matching ? matching.length : META.total);
const indexAt = (place) => (matching ? matching[place] : place);

// ---------------------------------------------------------------- lines

async function need(block) {
  if (block * META.lines in lines || block * META.lines >= META.total) return;
  const found = await piece(`i${block}`);
  if (block * META.lines in lines) return;
  found.forEach((line, index) => { lines[block * META.lines + index] = line; });
  arrivedLines += found.length;
}

// all of them, in the background; whoever asks waits for the same
let everything = null;
function allLines() {
  everything = everything ?? (async () => {
    for (let block = 0; block * META.lines < META.total; block += 1) {
      await need(block);
      // let the page answer in between
      if (block % 4 === 3) await new Promise((resolve) => { setTimeout(resolve); });
    }
  })();
  return everything;
}

function wordsOf(index) {
  if (haystack[index] === undefined) {
    const line = lines[index];
    const labels = [];
    for (let at = 0; at < line[LABELS].length; at += 2) labels.push(META.labels[line[LABELS][at]].values[line[LABELS][at + 1]]);
    haystack[index] = [...META.facets.map((_, facet) => facetOf(line, facet)), ...line.slice(FACETS, LABELS), line[LABELS + 1], ...labels]
      .join("\n").toLowerCase();
  }
  return haystack[index];
}

// ---------------------------------------------------------------- drawing what is in sight

const rowHeight = () => parseFloat(getComputedStyle(list).getPropertyValue("--row"));
let drawing = false;

// questions about one document begin alike: a line shows their beginning and their end
const HEAD = 44;
const TAIL = 58;
function inBrief(text) {
  if (text.length <= HEAD + TAIL + 6) return text;
  const head = text.slice(0, HEAD).replace(/\s+\S*$/, "");
  const tail = text.slice(-TAIL).replace(/^\S*\s+/, "");
  return `${head} … ${tail}`;
}

function rowOf(place) {
  const index = indexAt(place);
  const line = lines[index];
  const row = make("div", {
    role: "option", id: `line-${place}`, class: "line", "aria-selected": String(index === current), "aria-posinset": place + 1,
    "aria-setsize": shownCount(), "data-place": place,
  });
  if (line) {
    const found = (PAIR ? ["found_before", "found_after"] : ["found"]).map((name) => line[FIELD[name]]);
    const share = (one) => `${(100 * one).toFixed(0)}%`;
    const told = found.some((one) => one === null) ? "" : ` · ${[...new Set(found.map(share))].join(" → ")} of gold`;
    row.append(
      make("span", { class: "row-top" }, chip(facetOf(line, MAIN)),
        make("span", { class: "meta" }, keyOf(line), told)),
      make("span", { class: "question", title: line[FIELD.question] }, inBrief(line[FIELD.question])));
  } else row.append(make("span", { class: "meta" }, "…"));
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
  const rows = [];
  const blocks = new Set();
  for (let place = first; place < last; place += 1) {
    rows.push(rowOf(place));
    if (!lines[indexAt(place)]) blocks.add(Math.floor(indexAt(place) / META.lines));
  }
  holder.replaceChildren(...rows);
  if (shownCount() && active >= first && active < last) list.setAttribute("aria-activedescendant", `line-${active}`);
  else list.removeAttribute("aria-activedescendant");
  for (const block of blocks) need(block).then(redraw);
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

// ---------------------------------------------------------------- narrowing

const selects = META.facets.map((facet) => byId(`facet-${facet.name}`));
const label = byId("label");
const value = byId("value");

function options(select, all, values, counts) {
  select.replaceChildren(make("option", { value: "" }, all),
    ...values.map((one, index) => make("option", { value: String(index) }, `${one.length > 70 ? `${one.slice(0, 69)}…` : one} (${number(counts[index])})`)));
}

function fillValues() {
  const chosen = META.labels[Number(label.value)];
  const none = label.value === "" || chosen === undefined;
  options(value, "any", none ? [] : chosen.values, none ? [] : chosen.counts);
  value.disabled = none;
}

const narrowed = () => search.value.trim() !== "" || label.value !== "" || selects.some((one) => one.value !== "");

function matches(index, words, wanted, pair) {
  const line = lines[index];
  for (const [facet, one] of wanted) if (line[facet] !== one) return false;
  if (pair) {
    const labels = line[LABELS];
    let at = 0;
    while (at < labels.length && !(labels[at] === pair[0] && (pair[1] === null || labels[at + 1] === pair[1]))) at += 2;
    if (at >= labels.length) return false;
  }
  return words.every((word) => wordsOf(index).includes(word));
}

let filtering = 0;
async function filter() {
  filtering += 1;
  const turn = filtering;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = selects.map((one, facet) => [facet, one.value]).filter(([, one]) => one !== "").map(([facet, one]) => [facet, Number(one)]);
  const pair = label.value === "" ? null : [Number(label.value), value.value === "" ? null : Number(value.value)];
  if (narrowed()) {
    if (arrivedLines < META.total) {
      count.textContent = "Reading the list …";
      await allLines();
      if (turn !== filtering) return;
    }
    matching = [];
    for (let index = 0; index < META.total; index += 1) if (matches(index, words, wanted, pair)) matching.push(index);
  } else matching = null;
  active = Math.max(0, matching ? matching.indexOf(current) : current);
  list.scrollTop = 0;
  reveal(active);
  draw();
  const all = number(META.total);
  count.textContent = matching ? `${number(matching.length)} of ${all} questions` : `${all} questions, ${PAIR ? "those that changed" : "failures"} first`;
  byId("clear").hidden = !narrowed();
}

function clearFilters() {
  search.value = "";
  for (const select of [...selects, label]) select.value = "";
  fillValues();
  return filter();
}

// ---------------------------------------------------------------- opening

// two runs side by side need more room beside the list
const wide = window.matchMedia(`(min-width: ${PAIR ? 1250 : 900}px)`);
const atDesk = () => wide.matches;
function settle() {
  document.body.classList.toggle("stacked", !atDesk());
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
      stepButton("Previous", -1), stepButton("Next", 1),
      make("button", { type: "button", class: "quiet", id: "copy", click: copyLink }, "Copy link")));
}

async function openCase(index, { focus = false } = {}) {
  current = index;
  opening += 1;
  const turn = opening;
  const started = performance.now();
  panel.setAttribute("aria-busy", "true");
  try {
    await need(Math.floor(index / META.lines));
    const found = await caseOf(index);
    const sheets = found ? await sheetsOf(found) : new Map();
    if (turn === opening) show(index, found, sheets, focus);
  } catch (error) {
    if (turn === opening) panel.replaceChildren(make("p", { class: "prose error" }, error.message));
  }
  if (turn === opening) {
    panel.removeAttribute("aria-busy");
    panel.dataset.took = String(Math.round(performance.now() - started));
  }
}

function show(index, found, sheets, focus) {
  const line = lines[index];
  const key = keyOf(line);
  const title = make("h3", { id: "case-title", tabindex: -1 }, found ? found.question : line[FIELD.question]);
  const detail = make("article", { class: "case", "data-key": key, "aria-labelledby": "case-title" }, caseHead(line, key), title);
  if (!found) {
    detail.append(make("p", { class: "prose" }, line[FIELD.answer ?? FIELD.answer_after] || "No answer was given."),
      make("p", { class: "note" }, "This single file has no room for its passages; the report with its folder has them."));
  } else if (PAIR) twoSides(detail, found, sheets);
  else oneSide(detail, found, sheets);
  panel.replaceChildren(detail);
  history.replaceState(null, "", `#${key.split("/").map(encodeURIComponent).join("/")}`);
  document.body.classList.add("reading");
  draw();
  if (focus) title.focus({ preventScroll: true });
  if (focus || !atDesk() || panel.getBoundingClientRect().top < 0) panel.scrollIntoView({ block: "start" });
}

function toList() {
  document.body.classList.remove("reading");
  byId("list").scrollIntoView({ block: "start" });
  list.focus({ preventScroll: true });
}

function closeCase() {
  current = -1;
  opening += 1;
  panel.replaceChildren(byId("nothing-open").content.cloneNode(true));
  history.replaceState(null, "", location.pathname + location.search);
  toList();
  draw();
}

async function copyLink() {
  const button = byId("copy");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    // a browser that gives pages no clipboard: show what is to be copied
    const shown = make("input", { class: "link", readonly: true, value: location.href, "aria-label": "Link to this question" });
    button.replaceWith(shown);
    shown.select();
  }
}

// report.html#cuad/33 opens that question, so that one can be sent to a colleague
async function followHash() {
  let key = location.hash.slice(1);
  try { key = decodeURIComponent(key); } catch { /* not ours */ }
  if (!key.includes("/")) return;
  const index = await placeOf(key);
  if (index < 0 || index === current) return;
  if (matching && !matching.includes(index)) await clearFilters();
  active = matching ? matching.indexOf(index) : index;
  reveal(active);
  await openCase(index);
  if (atDesk()) byId("list").scrollIntoView({ block: "start" });
}
