/* The review page: the question that is shown, the judgments, and their storage. */
const DATA = JSON.parse(byId("data").textContent);
const CASES = DATA.cases;
const STORE = `exhibit-review:${DATA.about.review}`;
let at = 0;
let sheets = [];
const states = CASES.map(() => ({ gold: null, answer: null, comment: "", better: { contexts: [], is_impossible: false, answer: "", question: "" } }));

const DRAFTED = Boolean(DATA.about.drafted);
const isDone = (state) => Boolean(state.gold && (DRAFTED || state.answer));
const isTouched = (state) => Boolean(
  state.gold || state.answer || state.comment || state.better.answer || state.better.question || state.better.is_impossible || state.better.contexts.length,
);

function judgedCase(n) {
  const { dataset, id, was } = CASES[n];
  return { dataset, id, ...(DRAFTED ? { was } : {}), ...states[n] };
}

function reviewed() {
  const cases = CASES.map((_, n) => judgedCase(n)).filter((_, n) => isTouched(states[n]));
  const { drafted, save, ...about } = DATA.about;
  return { ...about, reviewer: byId("reviewer").value.trim(), cases };
}

function takeOver(review) {
  if (!review || review.review !== DATA.about.review) return false;
  const places = new Map(CASES.map((entry, n) => [JSON.stringify([entry.dataset, entry.id]), n]));
  for (const one of review.cases) {
    const n = places.get(JSON.stringify([one.dataset, one.id]));
    if (n === undefined) continue;
    const { gold, answer, comment, better } = one;
    states[n] = { gold, answer, comment, better: { question: "", ...better } };
  }
  byId("reviewer").value = review.reviewer || byId("reviewer").value;
  return true;
}

// with `exhibit view`, each judgment is sent at once, and again until the server has stored it
const RETRY = 3000; // milliseconds
const unsent = new Set();
let sending = false;
async function send(n) {
  if (!DATA.about.save) return;
  if (n !== undefined && isTouched(states[n])) unsent.add(n);
  if (sending || !unsent.size) return;
  if (!byId("reviewer").value.trim()) {
    byId("told").textContent = "Please enter your name first: it distinguishes the reviews.";
    return;
  }
  sending = true;
  const [next] = unsent;
  unsent.delete(next); // a judgment that changes in the meantime is sent again
  const body = JSON.stringify({ ...reviewed(), cases: [judgedCase(next)] });
  try {
    const reply = await fetch(DATA.about.save, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (!reply.ok) throw new Error(await reply.text());
    byId("told").textContent = "Saved.";
  } catch (error) {
    unsent.add(next);
    byId("told").textContent = `Not saved yet: ${error.message}`;
    setTimeout(send, RETRY);
  }
  sending = false;
  if (unsent.size && !byId("told").textContent.startsWith("Not saved")) send();
}

async function fetchSaved() {
  const reviewer = byId("reviewer").value.trim();
  if (!DATA.about.save || !reviewer) return;
  const reply = await fetch(`${DATA.about.save}?reviewer=${encodeURIComponent(reviewer)}&review=${encodeURIComponent(DATA.about.review)}`);
  if (reply.ok && takeOver(await reply.json())) show(at, false);
}

function keep() {
  send(at);
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...reviewed(), at }));
  } catch {
    byId("told").textContent = "This browser stores nothing for this page: save the review before you close it.";
  }
}

function remember() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || "null");
    if (takeOver(kept)) at = Math.min(kept.at || 0, CASES.length - 1);
  } catch {
    // nothing is stored, or it is unreadable: the review starts from the beginning
  }
}

function showProgress() {
  const done = states.filter(isDone).length;
  byId("progress").max = CASES.length;
  byId("progress").value = done;
  byId("done").textContent = `${done} of ${CASES.length} judged`;
  [...byId("list").children].forEach((item, n) => {
    const button = item.firstChild;
    const state = isDone(states[n]) ? "judged" : isTouched(states[n]) ? "begun" : "open";
    item.className = state;
    button.setAttribute("aria-current", n === at ? "true" : "false");
    button.querySelector(".unseen").textContent = `, ${state}`;
  });
}

function spansOf(entry, state) {
  const named = (filename, spans) => spans.map(([start, end]) => [start, end, filename]);
  return {
    gold: entry.gold.flatMap((gold) => named(gold.filename, gold.spans)),
    hits: entry.passages.filter((passage) => passage.spans.length).slice(0, 3).flatMap((passage) => named(passage.filename, passage.spans)),
    better: state.better.contexts.flatMap((context) => named(context.filename, context.spans)),
  };
}

function show(n, focus) {
  at = Math.min(Math.max(n, 0), CASES.length - 1);
  const entry = CASES[at];
  const state = states[at];
  const left = make("div", { class: "judged-part" });
  const right = make("div", { class: "sheets" });
  const say = (text) => { byId("told").textContent = text; };
  const { part, words, none } = betterPart(entry, state, changed);

  function changed() {
    listMarked(words, state.better.contexts, changed);
    none.checked = state.better.is_impossible;
    for (const sheet of sheets) Object.assign(sheet.shown, spansOf(entry, state)), sheet.paint();
    judged();
  }

  function take(filename, span, text) {
    takeWords(state, filename, span, text);
    if (state.gold === null) {
      state.gold = "wrong"; // corrected words mean that the gold is wrong
      byId("gold-wrong").checked = true;
    }
    say(`Marked: ${text}`);
    changed();
  }

  function giveBack() {
    state.better.contexts.pop();
    changed();
  }

  const judged = () => { showProgress(); keep(); };
  const judge = (name) => (judgment) => { state[name] = judgment; judged(); };
  left.append(
    make("p", { class: "kind" }, `${at + 1} of ${CASES.length}, ${entry.dataset}, question ${entry.id}`), make("h2", {}, entry.question),
    goldPart(entry), judging(DRAFTED ? "Do the proposed words answer it?" : "Is the gold right?", "gold", state.gold, 1, judge("gold")), part,
    ...(DRAFTED ? [] : [answerPart(entry), judging("Is the answer right?", "answer", state.answer, 4, judge("answer"))]),
    textField("comment", "Comment", state, "comment", judged, { rows: 3, class: "comment" }), stepping(),
  );
  const shown = spansOf(entry, state);
  sheets = entry.sheets.map((key) => new Sheet(DATA.sheets[key], { ...shown }, take, giveBack, say));
  right.append(legend(), ...sheets.map((sheet) => sheet.figure));
  if (!sheets.length) right.append(make("p", { class: "note" }, "No page of this question could be drawn."));
  byId("shown").replaceChildren(make("div", { class: "both-parts" }, left, right));
  listMarked(words, state.better.contexts, changed);
  for (const sheet of sheets) sheet.paint();
  say("");
  judged();
  if (focus) {
    byId("help").open = false;
    byId("case").focus({ preventScroll: true });
    byId("shown").scrollIntoView();
  }
}

function stepping() {
  const step = (title, to) => make("button", { type: "button", class: "quiet", disabled: !CASES[to], click: () => show(to, true) }, title);
  return make("p", { class: "stepping" }, step("Previous", at - 1), " ", step("Next question", at + 1));
}

function legend() {
  const key = (kind, text) => make("span", {}, make("i", { class: `key ${kind}` }), ` ${text}`);
  return make("p", { class: "legend" }, key("gold", DRAFTED ? "proposed" : "gold"), ...(DRAFTED ? [] : [key("hit", "retrieved")]), key("better", "marked by you"));
}

function save() {
  const review = reviewed();
  if (!review.reviewer) {
    byId("told").textContent = "Please enter your name first: it distinguishes the reviews.";
    byId("reviewer").focus();
    return;
  }
  const address = URL.createObjectURL(new Blob([`${JSON.stringify(review, null, 1)}\n`], { type: "application/json" }));
  const name = review.reviewer.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "review";
  const link = make("a", { href: address, download: `review-${DATA.about.run}-${name}.json` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  const open = CASES.length - states.filter(isDone).length;
  byId("told").textContent = open ? `Saved; ${open} questions are still open.` : "Saved. Thank you.";
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=radio]), textarea")) return;
  const press = (id) => byId(id).click();
  const judgment = JUDGMENTS[(Number(event.key) - 1) % 3];
  const actions = {
    j: () => show(at + 1, true), k: () => show(at - 1, true), c: () => byId("comment").focus(),
    m: () => sheets.length && sheets[0].ground.focus(), r: () => DRAFTED && byId("better-question").focus(),
    x: () => byId("impossible") && press("impossible"),
  };
  if ((DRAFTED ? /^[1-3]$/ : /^[1-6]$/).test(event.key)) press(`${Number(event.key) <= 3 ? "gold" : "answer"}-${judgment}`);
  else if (actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
}

byId("title").textContent = DATA.about.run;
byId("list").append(...CASES.map((entry, n) => make("li", {}, make("button",
  { type: "button", title: entry.question, click: () => show(n, true) }, String(n + 1), make("span", { class: "unseen" })))));
byId("save").addEventListener("click", save);
byId("reviewer").addEventListener("input", keep);
byId("reviewer").addEventListener("change", fetchSaved);
addEventListener("beforeunload", (event) => { if (unsent.size) event.preventDefault(); });
addEventListener("keydown", key);
remember();
fetchSaved();
byId("help").open = !states.some(isTouched);
show(at, false);
