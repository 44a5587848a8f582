// The open case: the answer beside the expected answer, and the pages with gold and retrieved passages drawn on them.

// offsets count characters as in Python, where an emoji is one character, not two
const cutOut = (text, start, end) => (/[\ud800-\udfff]/.test(text) ? [...text].slice(start, end).join("") : text.slice(start, end));

function valueOf(metric, value) {
  if (value === null || value === undefined) return "–";
  const [, unit] = META.metrics[metric];
  if (unit === "%") return (100 * value).toFixed(1);
  return unit === "chars" || unit === "tokens" ? value.toFixed(0) : String(+value.toPrecision(4));
}

const WORDS = {
  exact: "word for word", folded: "word for word, but for spaces and quotation marks", parts: "in parts",
  fuzzy: "nearly word for word", section: "the section that is cited", absent: "not found in the document",
};

function light(detail, number) {
  for (const mark of detail.querySelectorAll(".lit")) mark.classList.remove("lit");
  const marks = detail.querySelectorAll(`[data-n~="${number}"]`);
  for (const mark of marks) mark.classList.add("lit");
  return marks;
}

function goTo(detail, number) {
  const marks = light(detail, number);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const folded = marks.length ? marks[0].closest("details") : null;
  if (folded) folded.open = true;
  if (marks.length) marks[0].scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
}

const placeWords = (one) => (one.filename || "no document named") + (one.page ? `, page ${one.page}` : "");

function citeButton(detail, number, passage) {
  return make("button", {
    type: "button", class: passage.gold ? "cite both" : "cite", "data-cite": number,
    title: placeWords(passage), "aria-label": `Passage ${number}: ${placeWords(passage)}`,
    click: () => goTo(detail, number), mouseenter: () => light(detail, number), focus: () => light(detail, number),
  }, `[${number}]`);
}

// "[2]" and "[1, 3]" become links if these passages exist; "[2024] EWCA Civ 1" stays text
function withCitations(detail, text, passages) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(/\[\d+(?:\s*[,;–-]\s*\d+)*\]/g)) {
    const numbers = match[0].match(/\d+/g).map(Number);
    if (!numbers.every((number) => passages[number - 1])) continue;
    nodes.push(text.slice(at, match.index), numbers.map((n) => citeButton(detail, n, passages[n - 1])));
    at = match.index + match[0].length;
  }
  return [...nodes, text.slice(at)];
}

const dot = (outcome) => make("i", { class: "v", "data-tone": META.tones[outcome] ?? "lost", "aria-hidden": "true" });
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const chip = (outcome) => make("span", { class: "chip" }, dot(outcome), capital(outcome));

function answerBlock(detail, side) {
  if (side.error) return [make("h4", {}, "An error instead of an answer"), make("p", { class: "prose error" }, side.error)];
  const words = side.answer ? make("p", { class: `prose ${side.refused ? "refused" : ""}` }, withCitations(detail, side.answer, side.passages))
    : make("p", { class: "prose none" }, "No answer was requested, or the system gave none.");
  const facts = [
    side.seconds === null ? "" : `${+side.seconds.toPrecision(2)} s to reply`,
    side.confidence === null ? "" : `confidence ${(100 * side.confidence).toFixed(0)}%`,
  ].filter(Boolean).join(" · ");
  return [make("h4", {}, "What the system answered"), words, facts ? make("p", { class: "source" }, facts) : null];
}

const expectedBlock = (found) => [
  make("h4", {}, found.impossible ? "Expected: a refusal, because the documents do not answer this" : found.drafted ? "The drafted answer" : "The expected answer"),
  make("p", { class: "prose" }, found.truth)];

// ---------------------------------------------------------------- pages

function tag(x, y, text, kind, number) {
  const wide = 8 + 5.6 * text.length;
  return shape("g", { class: `tag ${kind}`, "data-n": number },
    shape("rect", { x, y, width: wide, height: 13, rx: 3 }),
    shape("text", { x: x + wide / 2, y: y + 9.8 }, text));
}

// returns the rectangle in which a line of gold and a line of a passage overlap, or null
function shared([ax, ay, aw, ah], [bx, by, bw, bh]) {
  const x = Math.max(ax, bx);
  const y = Math.max(ay, by);
  const width = Math.min(ax + aw, bx + bw) - x;
  const height = Math.min(ay + ah, by + bh) - y;
  return width > 0.5 && height > Math.min(ah, bh) / 2 ? [x, y, width, height] : null;
}

function marksOn(spans, found, side, filename) {
  const lines = ([start, end]) => spans[`${start}-${end}`] ?? [];
  const gold = found.gold.filter((one) => one.filename === filename).flatMap((one) => one.spans.flatMap(lines));
  const hits = side.passages.flatMap((one, index) => (one.filename === filename ? one.spans.flatMap(lines).map((box) => ({ box, n: index + 1 })) : []));
  const both = gold.flatMap((box) => hits.map(({ box: other, n }) => ({ box: shared(box, other), n })).filter((one) => one.box));
  return [
    ...hits.map(({ box, n }) => ({ box, n, kind: "hit" })),
    ...gold.map((box) => ({ box, n: null, kind: "gold" })),
    ...both.map((one) => ({ ...one, kind: "both" })),
  ];
}

function pageFigure(sheet, page, filename, found, side) {
  const [name, width, height, spans] = sheet;
  const drawing = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" },
    shape("image", { href: imageOf(name), width, height }));
  const tops = new Map();
  let gold = null;
  for (const { box: [x, y, w, h], n, kind } of marksOn(spans, found, side, filename)) {
    drawing.append(shape("rect", { class: `mark ${kind}`, x: x - 1, y: y - 1, width: w + 2, height: h + 2, "data-n": n }));
    if (n !== null && kind === "hit" && !tops.has(n)) tops.set(n, y + h / 2 - 6.5);
    if (kind === "gold" && gold === null) gold = y + h / 2 - 6.5;
  }
  let below = -14;
  for (const [n, top] of [...tops].sort((a, b) => a[1] - b[1])) {
    below = Math.max(below + 14, top); // numbers of passages that begin on the same line are placed one below the other
    drawing.append(tag(3, below, String(n), "hit", n));
  }
  if (gold !== null) drawing.append(tag(width - 36, gold, "gold", "gold", null));
  const numbers = [...tops.keys()].sort((a, b) => a - b);
  const listed = numbers.join(", ");
  const passages = numbers.length > 1 ? `passages ${listed}` : numbers.length ? `passage ${listed}` : "";
  const said = [gold === null ? "" : "gold", passages].filter(Boolean).join(" and ") || "nothing marked";
  drawing.setAttribute("aria-label", `${filename}, page ${page}: ${said}`);
  const figure = make("figure", { class: "page" });
  const enlarge = make("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => {
    const large = figure.classList.toggle("large");
    enlarge.setAttribute("aria-pressed", String(large));
    enlarge.textContent = large ? "Close" : "Enlarge";
    enlarge.focus();
  } }, "Enlarge");
  figure.append(make("figcaption", {}, make("span", {}, make("b", {}, filename), ` page ${page} · ${said}`), enlarge),
    make("div", { class: "sheet", tabindex: 0, role: "group", "aria-label": `Picture of ${filename}, page ${page}` }, drawing));
  return figure;
}

// for documents without pages: the text around gold and the first passages, with both marked
function excerptFigure(segments, filename, found, side) {
  const gold = found.gold.filter((one) => one.filename === filename).flatMap((one) => one.spans);
  const hits = side.passages.flatMap((one, index) => (one.filename === filename ? one.spans.map((span) => [span, index + 1]) : []));
  const leading = [...new Set(hits.map(([, n]) => n))].slice(0, 3);
  const wanted = [...gold, ...hits.filter(([, n]) => leading.includes(n)).map(([span]) => span)];
  const blocks = [];
  for (const [start, text] of segments) {
    const end = start + [...text].length;
    const spans = wanted.filter(([from, to]) => from < end && to > start);
    if (!spans.length) continue;
    const first = Math.max(start, Math.min(...spans.map(([from]) => from)) - 280);
    const last = Math.min(end, Math.max(...spans.map(([, to]) => to)) + 280);
    const edges = [...gold, ...hits.map(([span]) => span)].flat().filter((edge) => edge > first && edge < last);
    const cuts = [...new Set([first, last, ...edges])].sort((a, b) => a - b);
    const runs = cuts.slice(1).map((to, index) => {
      const from = cuts[index];
      const words = cutOut(text, from - start, to - start);
      const covers = ([a, b]) => a < to && b > from;
      const numbers = hits.filter(([span]) => covers(span)).map(([, n]) => n);
      const right = gold.some(covers);
      if (!right && !numbers.length) return words;
      return make("mark", { class: right ? (numbers.length ? "both" : "gold") : "hit", "data-n": numbers.join(" ") || null,
        title: [right ? "gold" : "", numbers.length ? `passage ${numbers.join(", ")}` : ""].filter(Boolean).join(", ") }, words);
    });
    blocks.push(make("blockquote", {}, "… ", runs, " …"));
  }
  return blocks.length ? make("figure", { class: "excerpt" }, make("figcaption", {}, make("b", {}, filename)), blocks) : null;
}

function legend() {
  const entry = ([kind, word]) => make("span", {}, make("i", { class: kind, "aria-hidden": "true" }), word);
  return make("p", { class: "legend" }, [["gold", "gold: the words that answer, marked by experts or, for drafted questions, proposed by a program"],
    ["hit", "retrieved: a passage the system found, by its number"], ["both", "both: gold that was retrieved"]].map(entry));
}

function pagesBlock(found, side, sheets, { explained = true } = {}) {
  let missing = 0;
  const figures = side.pages.map(([document, filename, page]) => {
    const sheet = sheets.get(document);
    const drawn = sheet?.pages?.[page] ? pageFigure(sheet.pages[page], page, filename, found, side)
      : sheet?.text ? excerptFigure(sheet.text, filename, found, side) : null;
    missing += drawn ? 0 : 1;
    return drawn;
  }).filter(Boolean);
  if (!side.pages.length) return null;
  const remark = missing ? make("p", { class: "note" }, figures.length
    ? `${missing} more pages are not drawn in this report; their words are below.`
    : "The pages are not drawn in this report; their words are below.") : null;
  const paged = figures.some((one) => one.classList.contains("page"));
  return make("section", { class: "seen" }, make("h4", {}, paged || !figures.length ? "On the page" : "In the document"),
    figures.length && explained ? legend() : null, make("div", { class: figures.length > 1 ? "pages" : "pages single" }, figures), remark);
}

// ---------------------------------------------------------------- the stages of the gold

function goldStages(one, several) {
  const lost = one.stages.findIndex(([stage]) => stage === one.lost);
  const steps = one.stages.map(([stage, text], index) => make("li", { class: lost < 0 || index < lost ? "kept" : index === lost ? "gone" : "after" },
    make("b", {}, META.stages[stage]), text ? make("small", {}, text) : null));
  return [
    several ? make("p", { class: "source" }, `Gold ${one.gold + 1}`) : null,
    make("ol", { class: "steps-of-gold" }, steps),
    one.lost ? make("p", { class: "source worse" }, capital(one.reason)) : null,
  ];
}

function stagesBlock(side) {
  if (!side.stages.length) return null;
  return make("section", { class: "stages" }, make("h4", {}, "The gold at each stage"), side.stages.map((one) => goldStages(one, side.stages.length > 1)));
}

// ---------------------------------------------------------------- words

function goldList(found) {
  if (!found.gold.length) return null;
  return make("section", {}, make("h4", {}, "Gold: the words that answer the question"), make("ol", { class: "passages" }, found.gold.map((one) =>
    make("li", {}, make("p", { class: "source" }, make("b", {}, one.filename || "no document named"),
      one.pages.length ? `, page ${one.pages.join(", ")}` : "", one.how ? ` · found in the document: ${WORDS[one.how] ?? one.how}` : ""),
    one.text ? make("blockquote", { class: "goldtext" }, one.text) : make("p", { class: "source" }, "The benchmark names the document, but quotes no words from it.")))));
}

function passageItem(one, number, read) {
  const unread = read !== null && number > read;
  const parts = [];
  let at = 0;
  const marked = [...one.ranges.map((range) => [...range, "both"]), ...one.added.map((range) => [...range, "added"])].sort((a, b) => a[0] - b[0]);
  for (const [start, end, kind] of marked) {
    parts.push(cutOut(one.text, at, start), make("mark", { class: kind }, cutOut(one.text, start, end)));
    at = end;
  }
  parts.push(cutOut(one.text, at));
  return make("li", { "data-n": number },
    make("p", { class: "source" }, make("b", {}, placeWords(one)),
      one.score === null ? "" : ` · score ${one.score.toFixed(3)}`,
      one.gold ? make("em", { class: "both" }, "contains gold") : null, unread ? make("em", {}, "not read for the answer") : null,
      one.spans.length > 1 ? make("em", {}, `in ${one.spans.length} pieces`) : null,
      one.added.length ? make("em", { class: "added" }, "has words that no document contains") : null),
    one.text ? make("blockquote", {}, parts) : null);
}

function passageList(side) {
  if (!side.passages.length) return make("p", { class: "note" }, side.error ? "" : "The system reported no passages.");
  const first = Math.max(3, Math.min(6, side.selected ?? 4));
  const items = side.passages.map((one, index) => passageItem(one, index + 1, side.selected));
  const rest = items.length > first ? make("details", {},
    make("summary", {}, `Passages ${first + 1} to ${items.length}${side.retrieved > items.length ? ` (of ${side.retrieved} retrieved)` : ""}`),
    make("ol", { class: "passages", start: first + 1 }, items.slice(first))) : null;
  return make("section", {}, make("h4", {}, "What the system retrieved, best first"),
    make("ol", { class: "passages" }, items.slice(0, first)), rest);
}

// one row per metric and one column per run; values that are better or worse than in the first run are marked
function scoreBlock(sides) {
  const metrics = [...new Set(sides.flatMap((side) => Object.keys(side?.scores ?? {})))];
  if (!metrics.length) return null;
  const cell = (metric, side, index) => {
    const value = side?.scores[metric];
    const first = sides[0]?.scores[metric];
    const [, unit, , way] = META.metrics[metric];
    const change = index && value !== undefined && first !== undefined ? value - first : 0;
    const kind = !change || way === "neither" ? null : (change > 0) === (way === "more") ? "better" : "worse";
    return make("td", { class: kind }, valueOf(metric, value), SEVERAL ? "" : make("small", {}, unit));
  };
  const row = (metric) => {
    const [title, , meaning] = META.metrics[metric];
    const depth = metric.split("@")[1];
    return make("tr", {}, make("th", { scope: "row" }, title, depth ? make("small", {}, " ", `first ${depth}`) : ""),
      sides.map((side, index) => cell(metric, side, index)), make("td", { class: "words" }, make("small", {}, meaning)));
  };
  const heads = ["Measure", ...(SEVERAL ? META.runs : ["value"])].map((one) => make("th", { scope: "col" }, one));
  return make("details", { class: "scores" }, make("summary", {}, "Scores of this question"),
    make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Scores of this question" }, make("table", { class: "small" },
      make("thead", {}, make("tr", {}, heads, make("th", { scope: "col", class: "words" }, "meaning"))),
      make("tbody", {}, metrics.map(row)))));
}

function labelBlock(found) {
  const labels = Object.entries(found.labels);
  return labels.length ? make("p", { class: "labels" }, labels.map(([key, value]) => make("span", {}, make("i", {}, key.replaceAll("_", " ")), value))) : null;
}

// ---------------------------------------------------------------- the whole case

function oneSide(detail, found, sheets) {
  const [side] = found.sides;
  detail.append(
    make("p", { class: "why" }, side.why.join(" ")),
    make("div", { class: "answers" }, make("section", {}, answerBlock(detail, side)), make("section", {}, expectedBlock(found))),
    stagesBlock(side) ?? "",
    pagesBlock(found, side, sheets) ?? "",
    make("div", { class: "lists" }, goldList(found) ?? "", passageList(side)),
    scoreBlock(found.sides) ?? "", labelBlock(found) ?? "");
}

function sideBySide(detail, found, sheets) {
  detail.append(make("div", { class: "answers" }, make("section", {}, expectedBlock(found)), goldList(found) ?? ""), sheets.size ? legend() : "",
    make("div", { class: "sides", tabindex: 0, role: "group", "aria-label": "The runs side by side" }, found.sides.map((side, index) => {
      const column = make("section", { class: "side-run", "aria-label": `Run ${META.runs[index]}` });
      column.append(make("h4", { class: "run" }, META.runs[index]));
      if (side === null) column.append(make("p", { class: "prose none" }, "This run did not ask the question."));
      else {
        column.append(make("p", { class: "outcome" }, chip(side.outcome)), make("p", { class: "why" }, side.why.join(" ")),
          make("section", {}, answerBlock(column, side)), stagesBlock(side) ?? "",
          pagesBlock(found, side, sheets, { explained: false }) ?? "", passageList(side));
      }
      return column;
    })),
    scoreBlock(found.sides) ?? "", labelBlock(found) ?? "");
}
