/* The pages that `exhibit view` serves: they send a person's input, and show the progress of jobs. */
const VIEW = JSON.parse(byId("view").textContent);
const NAME = "exhibit-reviewer";

// a form shows the status of the job that it started
let form = document.querySelector("form");
const say = (text) => { const status = (form ?? document).querySelector("[role=status]"); if (status) status.textContent = text; };

async function send(address, value) {
  const reply = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return JSON.parse(text);
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(error.message);
  }
}

function on(id, event, work) {
  const element = byId(id);
  element?.addEventListener(event, (given) => { given.preventDefault(); form = element.closest("form"); attempt(() => work(given)); });
}

/* ---------------------------------------------------------------- all bundles and runs */
on("compare", "submit", async () => {
  const chosen = [...document.querySelectorAll("input[name=run]:checked")].map((box) => box.value);
  if (chosen.length < 2) throw new Error("Tick two runs or more.");
  say("The comparison is being drawn …");
  location.href = (await send("compare", { runs: chosen })).open;
});
on("trend", "click", async () => {
  say("The trend is being drawn …");
  location.href = (await send("trend", {})).open;
});
const chosenFiles = [];
function takeFiles(files) {
  chosenFiles.push(...files);
  say(`${chosenFiles.length} documents chosen.`);
}
on("files", "change", (event) => takeFiles(event.target.files));
on("drop", "drop", (event) => { byId("drop").classList.remove("over"); takeFiles(event.dataTransfer.files); });
on("drop", "dragover", () => byId("drop").classList.add("over"));
on("drop", "dragleave", () => byId("drop").classList.remove("over"));
on("upload", "submit", async () => {
  const name = byId("name").value.trim();
  const folder = byId("folder").value.trim();
  if (!folder && !chosenFiles.length) throw new Error("Choose documents, or name a folder.");
  for (const [at, file] of chosenFiles.entries()) {
    say(`Uploading document ${at + 1} of ${chosenFiles.length} …`);
    const reply = await fetch(`upload/${encodeURIComponent(name)}/${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
    if (!reply.ok) throw new Error(await reply.text());
  }
  location.href = (await send("draft", { name, folder })).open;
});

// the first request for a run's result takes some time, because all its rows are read
(async () => {
  for (const cell of document.querySelectorAll("[data-result]")) {
    const reply = await fetch(`run/${cell.dataset.result}/result`);
    cell.replaceChildren(make(reply.ok ? "b" : "em", { class: reply.ok ? null : "failed" }, (await reply.text()).trim()));
  }
})();
// the passages are complete after all documents have been read
if (VIEW.again) setInterval(() => { if (!document.querySelector("input:focus, textarea:focus")) location.reload(); }, 2000);

/* ---------------------------------------------------------------- one bundle */
on("system", "change", () => { byId("address").hidden = byId("system").value !== "url"; });
on("evaluate", "submit", async () => {
  const url = byId("system").value === "url" ? byId("url").value.trim() : "";
  if (byId("system").value === "url" && !url) throw new Error("Enter the address of the server.");
  const value = { bundle: VIEW.key, preset: url ? "" : byId("preset").value, url, run: byId("run-name").value.trim() };
  location.href = (await send("../evaluate", value)).open;
});
on("apply", "submit", async () => { location.href = (await send("../apply", { bundle: VIEW.key })).open; });

/* ---------------------------------------------------------------- one document */
if (byId("pages")) {
  const contexts = []; // the marked passages
  const sheets = [];
  const changed = () => {
    listMarked(byId("marked"), contexts, changed);
    for (const sheet of sheets) {
      sheet.shown.better = contexts.flatMap((context) => context.spans);
      sheet.paint();
    }
  };
  const take = (filename, span, text) => {
    contexts.push({ filename, spans: [span], text });
    changed();
  };
  const giveBack = () => { contexts.pop(); changed(); };
  async function draw(figure, number) {
    const reply = await fetch(`sheet?name=${encodeURIComponent(VIEW.name)}&page=${number}`);
    if (!reply.ok) throw new Error(await reply.text());
    const content = await reply.json();
    const isHit = ([, , text]) => VIEW.words.some((word) => text.toLowerCase().startsWith(word));
    const hits = content.words.filter(isHit).map(([start, end]) => [start, end]);
    const sheet = new Sheet(content, { gold: content.gold, hits, better: [] }, take, giveBack, say);
    sheets.push(sheet);
    figure.replaceWith(sheet.figure);
    sheet.figure.dataset.page = number;
    changed();
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      attempt(() => draw(entry.target, Number(entry.target.dataset.page)));
    }
  }, { rootMargin: "800px" });
  for (const number of VIEW.pages) {
    const figure = make("figure", { class: "sheet waiting", "data-page": String(number) });
    byId("pages").append(figure);
    watcher.observe(figure);
  }
  if (VIEW.first > 1) document.querySelector(`[data-page="${VIEW.first}"]`)?.scrollIntoView();
  byId("reviewer").value = localStorage.getItem(NAME) || "";
  on("add", "submit", async () => {
    localStorage.setItem(NAME, byId("reviewer").value.trim());
    const value = {
      reviewer: byId("reviewer").value, question: byId("question").value.trim(), answer: byId("answer").value.trim(),
      comment: byId("comment").value.trim(), contexts, filename: VIEW.name,
    };
    const { added } = await send("question", value);
    say(`Saved: ${added} of your questions are stored for this bundle. Choose “Make a bundle” on the bundle's page.`);
    contexts.length = 0;
    for (const id of ["question", "answer", "comment"]) byId(id).value = "";
    changed();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "m" && !event.target.closest("input, textarea") && sheets.length) sheets[0].ground.focus();
  });
}

/* ---------------------------------------------------------------- running jobs */
if (byId("output") && VIEW.job) {
  const EVERY = 1000; // milliseconds
  const show = async () => {
    const job = await (await fetch(`${VIEW.job}/state`)).json();
    const running = job.state === "running";
    byId("state").textContent = job.state;
    byId("output").textContent = job.output;
    byId("progress").hidden = !running;
    if (job.total) Object.assign(byId("progress"), { max: job.total, value: job.done });
    byId("far").textContent = !running ? "" : job.total ? `${job.step}: ${number(job.done)} of ${number(job.total)}` : `${job.step || "being prepared"}, ${job.seconds} s so far`;
    byId("fault").textContent = job.state === "failed" ? job.output.trim().split("\n").filter((line) => line.startsWith("error: ")).join(" ") || "It failed; the technical output below has the reason." : "";
    byId("fault").hidden = job.state !== "failed";
    byId("stop").hidden = !running;
    byId("resume").hidden = !job.resumable;
    byId("open").hidden = !job.open;
    if (job.open) byId("open").href = job.open;
    if (running) setTimeout(() => attempt(show), EVERY);
  };
  attempt(show);
  on("stop", "click", async () => send(`${VIEW.job}/stop`, {}));
  on("resume", "click", async () => { location.href = (await send(`${VIEW.job}/resume`, {})).open; });
}
