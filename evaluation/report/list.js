// The list: filtered by four selects and a search, drawn a screenful at a time, walked with j and k.

const STEP = 50;
const cases = DATA.cases;
const list = byId("cases");
const more = byId("more");
const count = byId("count");
const controls = ["search", "dataset", "verdict", "label", "value"].map(byId);
const [search, dataset, verdict, label, value] = controls;

const searchable = cases.map((one) =>
  [one.question, one.answer, one.filename, one.dataset, one.id, one.verdict, ...Object.values(one.labels)].join("\n").toLowerCase());

let matching = [];
let drawn = 0;

function options(select, all, names, counts = {}) {
  const chosen = select.value;
  select.replaceChildren(make("option", { value: "" }, all),
    ...names.map((name) => make("option", { value: name }, counts[name] ? `${name} (${counts[name]})` : name)));
  select.value = names.includes(chosen) ? chosen : "";
}

function tally(values) {
  const counts = {};
  for (const one of values) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}

function fillValues() {
  const counts = tally(cases.filter((one) => label.value in one.labels).map((one) => one.labels[label.value]));
  options(value, "any", label.value ? Object.keys(counts).sort() : [], counts);
  value.disabled = !label.value;
}

function row(record, index) {
  const pages = record.detail?.pages?.length ?? 0;
  const detail = make("div", { class: "detail", id: `detail-${index}`, hidden: true });
  const button = make("button", {
    type: "button", class: "open", "aria-expanded": "false", "aria-controls": detail.id, click: () => toggle(button, record),
  },
  make("span", { class: "chip" }, make("i", { class: "v", "data-verdict": record.verdict }), record.verdict),
  make("span", { class: "question" }, record.question),
  make("span", { class: "meta" },
    make("span", {}, `${record.dataset} ${record.id}`),
    record.recall === null ? "" : make("span", { title: "gold text retrieved" }, `${(100 * record.recall).toFixed(0)}% of gold`),
    pages ? make("span", {}, pages === 1 ? "1 page" : `${pages} pages`) : ""));
  return make("article", { class: "case", "data-key": `${record.dataset}/${record.id}` }, make("h3", {}, button), detail);
}

function toggle(button, record, force) {
  const open = force ?? button.getAttribute("aria-expanded") !== "true";
  const detail = byId(button.getAttribute("aria-controls"));
  if (open && !detail.hasChildNodes()) openCase(detail, record);
  button.setAttribute("aria-expanded", String(open));
  detail.hidden = !open;
}

function drawMore() {
  const next = matching.slice(drawn, drawn + STEP);
  list.append(...next.map((index) => row(cases[index], index)));
  drawn += next.length;
  const left = matching.length - drawn;
  more.hidden = left === 0;
  more.textContent = `Show ${Math.min(STEP, left)} more of ${left.toLocaleString("en")}`;
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  matching = [];
  cases.forEach((one, index) => {
    if (dataset.value && one.dataset !== dataset.value) return;
    if (verdict.value && one.verdict !== verdict.value) return;
    if (label.value && !(label.value in one.labels)) return;
    if (value.value && one.labels[label.value] !== value.value) return;
    if (words.every((word) => searchable[index].includes(word))) matching.push(index);
  });
  list.replaceChildren();
  drawn = 0;
  drawMore();
  const all = cases.length.toLocaleString("en");
  count.textContent = matching.length === cases.length ? `${all} questions, failures first`
    : `${matching.length.toLocaleString("en")} of ${all} questions`;
}

function walk(step) {
  let buttons = [...list.querySelectorAll("button.open")];
  const inside = document.activeElement.closest("article");
  const at = inside ? buttons.indexOf(inside.querySelector("button.open")) : step > 0 ? -1 : buttons.length;
  if (at + step >= buttons.length && !more.hidden) {
    drawMore();
    buttons = [...list.querySelectorAll("button.open")];
  }
  const next = buttons[Math.max(0, Math.min(buttons.length - 1, at + step))];
  if (!next) return;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && event.target === search) {
    search.value = "";
    search.blur();
    filter();
  } else if (typing) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    walk(event.key === "j" ? 1 : -1);
  }
}

// report.html#cuad/33 opens that question, so that one can be sent to a colleague
function followHash() {
  const key = decodeURIComponent(location.hash.slice(1));
  const index = cases.findIndex((one) => `${one.dataset}/${one.id}` === key);
  if (index < 0) return;
  byId("filters").reset();
  fillValues();
  filter();
  while (drawn <= matching.indexOf(index)) drawMore();
  const article = [...list.children].find((one) => one.dataset.key === key);
  toggle(article.querySelector("button.open"), cases[index], true);
  article.scrollIntoView();
}

options(dataset, "all", [...new Set(cases.map((one) => one.dataset))].sort(), tally(cases.map((one) => one.dataset)));
const verdictCounts = tally(cases.map((one) => one.verdict));
options(verdict, "all", DATA.verdicts.filter((one) => verdictCounts[one]), verdictCounts);
options(label, "any", [...new Set(cases.flatMap((one) => Object.keys(one.labels)))].sort());
fillValues();
filter();
followHash();

label.addEventListener("change", fillValues);
for (const control of controls) control.addEventListener(control === search ? "input" : "change", filter);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", drawMore);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", followHash);
for (const pick of document.querySelectorAll("[data-pick]")) {
  pick.addEventListener("click", () => {
    verdict.value = pick.dataset.pick;
    filter();
    byId("list").scrollIntoView();
  });
}
