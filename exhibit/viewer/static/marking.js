/* A page whose words can be marked by dragging the mouse, or with the arrow keys. */
const touches = (word, span) => word[0] < span[1] && span[0] < word[1];

class Sheet {
  constructor(content, shown, take, giveBack, say) {
    Object.assign(this, { content, shown, take, giveBack, say, cursor: -1, anchor: -1, dragging: false });
    this.words = content.words;
    this.figure = make("figure", { class: content.src ? "sheet" : "sheet words" });
    const where = content.number ? `, page ${content.number}` : "";
    this.role = { tabindex: 0, role: "application", "aria-label": `${content.filename}${where}: mark words with the arrow keys, Shift and Enter` };
    this.figure.append(make("figcaption", {}, make("b", {}, content.filename), where));
    this.ground = content.src ? this.drawPage() : this.drawText();
    this.figure.append(this.ground);
    this.listen();
  }

  drawPage() {
    const { width, height, src } = this.content;
    this.parts = this.words.map((word, at) => shape("g", { class: "word", "data-at": at },
      word.slice(3).map(([x, y, w, h]) => shape("rect", { x: x - 1, y: y - 1, width: w + 2, height: h + 2 }))));
    return shape("svg", { viewBox: `0 0 ${width} ${height}`, ...this.role }, shape("image", { href: src, width, height }), this.parts);
  }

  drawText() {
    const breaks = new Set(this.content.breaks);
    this.parts = this.words.map((word, at) => make("span", { class: "word", "data-at": at }, word[2]));
    return make("div", this.role, this.parts.map((part, at) => [breaks.has(at) ? make("br") : null, part, " "]));
  }

  listen() {
    const at = (event) => {
      const part = event.target.closest && event.target.closest(".word");
      return part ? Number(part.dataset.at) : -1;
    };
    this.ground.addEventListener("pointerdown", (event) => {
      const place = at(event);
      if (event.button !== 0 || place < 0) return;
      event.preventDefault();
      this.ground.focus({ preventScroll: true });
      this.dragging = true;
      this.anchor = event.shiftKey && this.anchor >= 0 ? this.anchor : place;
      this.cursor = place;
      this.paint();
    });
    this.ground.addEventListener("pointermove", (event) => {
      if (!this.dragging) return;
      const place = at(event);
      if (place >= 0 && place !== this.cursor) {
        this.cursor = place;
        this.paint();
      }
    });
    this.ground.addEventListener("pointerup", () => {
      if (!this.dragging) return;
      this.dragging = false;
      this.takeSelection();
    });
    this.ground.addEventListener("keydown", (event) => this.key(event));
    this.ground.addEventListener("focus", () => {
      if (this.cursor < 0) {
        const gold = this.words.findIndex((word) => this.shown.gold.some((span) => touches(word, span)));
        this.cursor = Math.max(gold, 0);
      }
      this.paint();
    });
    this.ground.addEventListener("blur", () => this.paint());
  }

  middle(at) {
    if (!this.content.src) {
      const box = this.parts[at].getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2, box.height];
    }
    const [x, y, w, h] = this.words[at][3];
    return [x + w / 2, y + h / 2, h];
  }

  line(way) {
    // the nearest word of the next line above or below
    const [x, y, high] = this.middle(this.cursor);
    let best = this.cursor;
    let least = Infinity;
    for (let at = this.cursor + way; at >= 0 && at < this.words.length; at += way) {
      const [otherX, otherY] = this.middle(at);
      if ((otherY - y) * way < high / 2) continue;
      const far = Math.abs(otherY - y) * 3 + Math.abs(otherX - x);
      if (far < least) [best, least] = [at, far];
      if (Math.abs(otherY - y) > 6 * high) break;
    }
    return best;
  }

  key(event) {
    const moves = {
      ArrowRight: () => this.cursor + 1, ArrowLeft: () => this.cursor - 1,
      ArrowDown: () => this.line(1), ArrowUp: () => this.line(-1),
      Home: () => 0, End: () => this.words.length - 1,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !this.words.length) return;
    if (moves[event.key]) {
      const before = this.cursor;
      this.cursor = Math.min(Math.max(moves[event.key](), 0), this.words.length - 1);
      if (!event.shiftKey) this.anchor = -1;
      else if (this.anchor < 0) this.anchor = before;
      this.paint();
      this.say(this.selection().map((at) => this.words[at][2]).join(" "));
      const part = this.parts[this.cursor];
      part.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key === "Enter") {
      this.takeSelection();
    } else if (event.key === "Backspace" || event.key === "Delete") {
      this.giveBack();
    } else if (event.key === "Escape") {
      this.anchor = -1;
      this.ground.blur();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  selection() {
    if (this.cursor < 0) return [];
    const from = this.anchor < 0 ? this.cursor : this.anchor;
    const [first, last] = from <= this.cursor ? [from, this.cursor] : [this.cursor, from];
    return Array.from({ length: last - first + 1 }, (_, step) => first + step);
  }

  takeSelection() {
    const chosen = this.selection().map((at) => this.words[at]);
    if (!chosen.length) return;
    this.take(this.content.filename, [chosen[0][0], chosen[chosen.length - 1][1]], chosen.map((word) => word[2]).join(" "));
    this.anchor = -1;
    this.paint();
  }

  paint() {
    const focused = document.activeElement === this.ground;
    const chosen = new Set(this.dragging || (focused && this.anchor >= 0) ? this.selection() : []);
    const mine = (spans) => spans.filter((span) => span[2] === undefined || span[2] === this.content.filename);
    const { gold, hits, better } = this.shown;
    this.parts.forEach((part, at) => {
      const word = this.words[at];
      const is = (spans) => mine(spans).some((span) => touches(word, span));
      part.classList.toggle("gold", is(gold));
      part.classList.toggle("hit", is(hits));
      part.classList.toggle("better", is(better));
      part.classList.toggle("chosen", chosen.has(at));
      part.classList.toggle("cursor", focused && at === this.cursor);
    });
  }
}

// lists the marked passages, each with a button that removes it
function listMarked(list, contexts, changed) {
  list.replaceChildren(...contexts.map(({ text, filename }, at) => {
    const remove = () => { contexts.splice(at, 1); changed(); };
    const button = make("button", { type: "button", class: "quiet", "aria-label": `Remove: ${text}`, click: remove }, "remove");
    return make("li", {}, make("q", {}, text), " ", make("small", {}, filename), " ", button);
  }));
}
