/* One question: its text, its gold, the answer, and the reviewer's judgment. */
const JUDGMENTS = ["right", "wrong", "unclear"];

function goldPart(entry) {
  const part = make("section", { class: "gold-part" }, make("h3", {}, DRAFTED ? "The proposed words" : "Gold: the words that answer, according to the benchmark"));
  if (entry.impossible) part.append(make("p", {}, DRAFTED ? "Nothing: the program is sure that the document does not answer this question." : "Nothing: the benchmark says that the documents do not answer this question."));
  for (const gold of entry.gold) {
    const pages = gold.pages.length ? `, page ${gold.pages.join(", ")}` : "";
    part.append(make("p", { class: "source" }, make("b", {}, gold.filename), pages));
    if (gold.text) part.append(make("blockquote", { class: "goldtext" }, gold.text));
    else part.append(make("p", { class: "note" }, "The benchmark names the document, but quotes no words from it."));
    if (gold.text && !gold.spans.length) part.append(make("p", { class: "note" }, "These words were not found in the document."));
  }
  if (!entry.impossible && entry.truth !== entry.gold.map((gold) => gold.text).join(" ")) {
    part.append(make("h4", {}, DRAFTED ? "The drafted answer" : "The expected answer"), make("p", { class: "prose" }, entry.truth));
  }
  return part;
}

function answerPart(entry) {
  const part = make("section", {}, make("h3", {}, "The system's answer"));
  if (entry.error) part.append(make("p", { class: "worse" }, `The system gave an error: ${entry.error}`));
  else if (entry.answer === null) part.append(make("p", {}, "No answer was requested: only passages were retrieved."));
  else part.append(make("p", { class: "prose" }, entry.answer));
  if (entry.passages.length) {
    const items = entry.passages.map(({ filename, page, cited, text }) => make("li", {},
      make("p", { class: "source" }, make("b", {}, filename), `${page ? `, page ${page}` : ""}${cited ? ", cited" : ""}`),
      text ? make("blockquote", { class: "hittext" }, text) : null));
    part.append(make("details", {}, make("summary", {}, `${items.length} passages from which it was made, best first`), make("ol", {}, items)));
  }
  return part;
}

function judging(title, name, value, first, change) {
  return make("fieldset", { class: "judging" }, make("legend", {}, title), JUDGMENTS.map((judgment, at) => {
    const id = `${name}-${judgment}`;
    const input = make("input", { type: "radio", name, id, value: judgment, checked: value === judgment, change: () => change(judgment) });
    return make("label", { for: id }, input, ` ${judgment} `, make("kbd", {}, String(first + at)));
  }));
}

// a text area below its title; its text is a field of `holder`
function textField(id, title, holder, name, changed, more = {}) {
  const input = () => { holder[name] = area.value; changed(); };
  const area = make("textarea", { id, rows: more.rows ?? 2, input }, holder[name]);
  return make("label", { for: id, class: more.class }, title, area);
}

function betterPart(entry, state, changed) {
  const words = make("ul", { class: "marked" });
  const none = make("input", { type: "checkbox", id: "impossible", checked: state.better.is_impossible, change: () => {
    state.better.is_impossible = none.checked;
    if (none.checked) state.better.contexts = [];
    if (none.checked && state.gold === null) {
      state.gold = "wrong"; // if no passage answers, the gold is wrong
      byId("gold-wrong").checked = true;
    }
    changed();
  } });
  const part = make("section", { class: "better-part" }, make("h4", {}, DRAFTED ? "Better words" : "Better gold"),
    make("p", { class: "note" }, "Drag over words on the page, or press m and use the arrow keys."), words,
    entry.impossible ? null : make("label", { for: "impossible", class: "tick" }, none, " The documents do not answer this question"),
    textField("better-answer", "Better expected answer, if that changes too", state.better, "answer", changed),
    DRAFTED ? textField("better-question", ["The question in better words ", make("kbd", {}, "r")], state.better, "question", changed) : null);
  return { part, words, none };
}

function takeWords(state, filename, span, text) {
  // words that touch marked words, or are one space away from them, join their passage
  const kept = [];
  let [start, end] = span;
  for (const context of state.better.contexts) {
    const [first, last] = context.spans[0];
    if (context.filename !== filename || last + 1 < start || end + 1 < first) kept.push(context);
    else [start, end] = [Math.min(start, first), Math.max(end, last)];
  }
  const joined = start === span[0] && end === span[1] ? text : wordsBetween(filename, start, end);
  state.better.contexts = [...kept, { filename, spans: [[start, end]], text: joined }];
  state.better.is_impossible = false;
}

function wordsBetween(filename, start, end) {
  const found = new Map();
  for (const sheet of Object.values(DATA.sheets)) {
    if (sheet.filename !== filename) continue;
    for (const word of sheet.words) if (word[0] >= start && word[1] <= end) found.set(word[0], word[2]);
  }
  return [...found.keys()].sort((a, b) => a - b).map((at) => found.get(at)).join(" ");
}
