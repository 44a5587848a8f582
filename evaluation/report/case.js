// One case, opened: the question's answer, its scores, and the pages with gold and retrieved passages drawn on them.

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

function citeButton(detail, number, passage) {
  const where = passage.filename + (passage.page ? `, page ${passage.page}` : "");
  return make("button", {
    type: "button", class: passage.gold ? "cite both" : "cite", "data-cite": number,
    title: where, "aria-label": `Source ${number}: ${where}`,
    click: () => goTo(detail, number),
  }, `[${number}]`);
}

// "[2]" and "[1, 3]" become links where there are such passages; "[2024] EWCA Civ 1" stays text
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

function answerBlock(detail, data) {
  const told = data.refused ? "refused" : "";
  const answer = data.answer
    ? make("p", { class: `prose ${told}` }, withCitations(detail, data.answer, data.passages))
    : make("p", { class: "prose none" }, "No answer was given.");
  return make("div", { class: "answers" },
    make("section", {}, make("h4", {}, "The system's answer"), answer),
    make("section", {},
      make("h4", {}, data.impossible ? "Expected: a refusal" : "Expected answer"),
      make("p", { class: "prose" }, data.truth)));
}

// metrics read at several depths stand in one row each, so that they can be compared along k
function scoreBlock(scores) {
  const families = new Map();
  const single = [];
  for (const metric of Object.keys(scores)) {
    const [family, depth] = metric.split("@");
    if (depth === undefined) single.push(metric);
    else families.set(family, [...(families.get(family) ?? []), Number(depth)]);
  }
  const deep = [...families].filter(([, depths]) => depths.length > 1);
  for (const [family, depths] of families) if (depths.length === 1) single.push(`${family}@${depths[0]}`);
  const ks = [...new Set(deep.flatMap(([, depths]) => depths))].sort((a, b) => a - b);
  const title = (metric) => (DATA.names[metric] ?? [metric])[0];
  const table = deep.length ? make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Scores by k" },
    make("table", { class: "small" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "by passages read, k ="),
        ks.map((k) => make("th", { scope: "col" }, String(k))))),
      make("tbody", {}, deep.map(([family]) => make("tr", {},
        make("th", { scope: "row", title: family }, title(`${family}@${ks[0]}`)),
        ks.map((k) => make("td", {}, valueOf(`${family}@${k}`, scores[`${family}@${k}`])))))))) : null;
  if (!single.length && !deep.length) return null;
  return make("section", { class: "scores" }, make("h4", {}, "Scores"), table,
    make("dl", { class: "singles" }, single.map((metric) => make("div", {},
      make("dt", { title: (DATA.names[metric] ?? [])[2] ?? metric }, title(metric)),
      make("dd", {}, valueOf(metric, scores[metric]), make("small", {}, ` ${(DATA.names[metric] ?? [])[1] ?? ""}`))))));
}

function tag(x, y, text, kind, number) {
  const wide = 8 + 5.6 * text.length;
  return shape("g", { class: `tag ${kind}`, "data-n": number },
    shape("rect", { x, y, width: wide, height: 13, rx: 3 }),
    shape("text", { x: x + wide / 2, y: y + 9.8 }, text));
}

function pageFigure(entry) {
  const page = pageOf(entry.page);
  const drawing = shape("svg", { viewBox: `0 0 ${page.width} ${page.height}`, role: "img" },
    shape("image", { href: page.src, width: page.width, height: page.height }));
  const tagged = new Set();
  const tags = [];
  let gold = false;
  let below = -14;
  for (const [x, y, width, height, kind, numbers] of entry.marks) {
    drawing.append(shape("rect", {
      class: `mark ${kind}`, x: x - 1, y: y - 1, width: width + 2, height: height + 2, "data-n": numbers.join(" ") || null,
    }));
    for (const number of numbers.filter((n) => !tagged.has(n))) {
      tagged.add(number);
      // passages that begin on one line have their numbers below each other
      below = Math.max(below + 14, y + height / 2 - 6.5);
      tags.push(tag(3, below, String(number), "hit", number));
    }
    if (kind !== "hit" && !gold) tags.push(tag(page.width - 36, y + height / 2 - 6.5, "gold", "gold", null));
    gold = gold || kind !== "hit";
  }
  const passages = tagged.size ? `${tagged.size > 1 ? "passages" : "passage"} ${[...tagged].sort((a, b) => a - b).join(", ")}` : "";
  const said = [gold ? "gold" : "", passages].filter(Boolean).join(" and ") || "nothing marked";
  drawing.setAttribute("aria-label", `${page.filename}, page ${page.number}: ${said}`);
  drawing.append(...tags);
  const figure = make("figure", { class: "page" });
  const enlarge = make("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => {
    enlarge.setAttribute("aria-pressed", String(figure.classList.toggle("large")));
  } }, "Enlarge");
  figure.append(make("figcaption", {},
    make("span", {}, make("b", {}, page.filename), ` page ${page.number} · ${said}`), enlarge),
  make("div", { class: "sheet", tabindex: 0, role: "region", "aria-label": `${page.filename}, page ${page.number}` }, drawing));
  return figure;
}

function legend() {
  const entry = ([kind, word]) => make("span", {}, make("i", { class: kind }), word);
  return make("span", { class: "legend" }, [["gold", "gold"], ["hit", "retrieved"], ["both", "both"]].map(entry));
}

function excerptBlock(excerpt) {
  return make("figure", { class: "excerpt" }, make("figcaption", {}, make("b", {}, excerpt.filename)),
    make("blockquote", {}, "… ", excerpt.runs.map(([text, kind, numbers]) => kind
      ? make("mark", { class: kind, "data-n": numbers.join(" ") || null, title: numbers.length ? `passage ${numbers.join(", ")}` : "gold" }, text)
      : text), " …"));
}

function goldList(gold) {
  if (!gold.length) return null;
  return make("section", {}, make("h4", {}, "Gold passages"), make("ol", { class: "passages" }, gold.map((one) =>
    make("li", {}, make("p", { class: "source" }, make("b", {}, one.filename || "no document named"),
      one.pages.length ? ` page ${one.pages.join(", ")}` : "", one.how ? ` · located: ${one.how}` : ""),
    one.text ? make("blockquote", { class: "goldtext" }, one.text) : null))));
}

function passageItem(one, number, read) {
  const unread = read !== null && number > read;
  return make("li", { "data-n": number, class: unread ? "unread" : null },
    make("p", { class: "source" }, make("b", {}, one.filename || "no document named"), one.page ? ` page ${one.page}` : "",
      one.score === null ? "" : ` · ${one.score.toFixed(3)}`,
      one.gold ? make("em", { class: "both" }, "holds gold") : null, unread ? make("em", {}, "not read") : null),
    make("blockquote", {}, one.parts.map(([text, gold]) => gold ? make("mark", { class: "both" }, text) : text)));
}

function passageList(data) {
  if (!data.passages.length) return make("p", { class: "note" }, "Nothing was retrieved.");
  const first = Math.max(3, Math.min(6, data.selected ?? 4));
  const items = data.passages.map((one, index) => passageItem(one, index + 1, data.selected));
  const rest = items.length > first ? make("details", {},
    make("summary", {}, `Passages ${first + 1} to ${items.length} of ${data.retrieved}`),
    make("ol", { class: "passages", start: first + 1 }, items.slice(first))) : null;
  return make("section", {}, make("h4", {}, "Retrieved passages"),
    make("ol", { class: "passages" }, items.slice(0, first)), rest);
}

function openCase(detail, record) {
  const data = record.detail;
  if (!data) {
    detail.append(make("p", { class: "prose" }, record.answer || "No answer was given."),
      make("p", { class: "note" }, "This report has no room for its passages; they are in eval_results.jsonl."));
    return;
  }
  const pages = data.pages ?? [];
  const excerpts = data.excerpts ?? [];
  const labels = Object.entries(record.labels);
  const seen = pages.length
    ? make("section", {}, make("h4", {}, "On the page", legend()), make("div", { class: "pages" }, pages.map(pageFigure))) : "";
  const lists = make("div", { class: "lists" },
    make("div", {}, goldList(data.gold), scoreBlock(data.scores)), passageList(data));
  detail.append(
    make("p", { class: "why" }, data.why),
    answerBlock(detail, data),
    excerpts.length ? make("section", {}, make("h4", {}, "In the text", legend()), excerpts.map(excerptBlock)) : "",
    ...(pages.length === 1 ? [make("div", { class: "beside" }, seen, lists)] : [seen, lists]),
    labels.length ? make("p", { class: "labels" }, labels.map(([key, value]) => make("span", {}, make("i", {}, key), value))) : "");
  for (const cite of detail.querySelectorAll("[data-cite]")) {
    for (const event of ["mouseenter", "focus"]) cite.addEventListener(event, () => light(detail, cite.dataset.cite));
  }
}
