// Lists tags and instructions, searches them, and fills the rows that open.
// The texts in the data are the user's, so they enter the document only as text.
const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (each) => each.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
const { tag, instruction, rows, strings } = await new Response(unpacked).json();
const [search, summary] = ["search", "found"].map((id) => document.getElementById(id));

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function link(hash, ...children) {
  const made = element("a", "", ...children);
  made.href = hash;
  return made;
}

const number = (value) => value.toLocaleString("en");
const texts = (numbers) => numbers.map((text) => strings[text]);
const toInstruction = (place) => link(`#instruction-${place}`, strings[instruction.cells[place][0]]);

// A list of tags or instructions, of which `page` more are shown at a time.
class List {
  constructor(kind, data, page, [count, list, more], relate) {
    Object.assign(this, { kind, data, page, count, list, more, relate });
    [this.found, this.shown, this.linked, this.haystack] = [data.order, 0, -1, null];
    more.addEventListener("click", () => this.grow());
    document.getElementById(`${kind}s-found`).hidden = !data.order.length;
  }

  open(row, place) {
    if (row.children.length > 1) return;
    const about = texts(this.data.about[place]).map((text) => element("div", "", text));
    row.append(element("div", "about", ...about, ...this.relate(place, this.data.links[place])));
  }

  row(place) {
    const cells = texts(this.data.cells[place]).map((text, column) => element("span", `of-${this.data.columns[column]}`, text));
    const name = this.kind === "tag" ? [link(`#tag-${place}`, `#${place}`)] : [];
    if (this.kind === "tag") cells[0].classList.add("state", cells[0].textContent);
    const made = element("details", this.kind, element("summary", "", ...name, ...cells));
    made.id = `${this.kind}-${place}`;
    made.addEventListener("toggle", () => made.open && this.open(made, place));
    return made;
  }

  matching(query) {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    const { order, cells, about } = this.data;
    if (!wanted.length) return order;
    // The name of a fusion finds what is in it, and the other way round.
    const near = (place) => this.kind === "instruction" ? this.data.links[place].map((other) => strings[cells[other][0]]) : [];
    const text = (place) => [`#${place}`, ...texts(cells[place]), ...texts(about[place]), ...near(place)].join("\n").toLowerCase();
    this.haystack ??= order.map(text);
    const found = order.filter((_, position) => wanted.every((word) => this.haystack[position].includes(word)));
    // An exact name comes first.
    const is = (place) => this.kind === "instruction" && strings[cells[place][0]].toLowerCase() === wanted[0];
    return [...found.filter(is), ...found.filter((place) => !is(place))];
  }

  grow() {
    const rest = this.found.slice(this.shown, this.shown + this.page);
    this.list.append(...rest.filter((place) => place !== this.linked).map((place) => this.row(place)));
    this.shown += rest.length;
    const [all, left] = [this.data.order.length, this.found.length - this.shown];
    this.count.textContent = `${number(this.shown)} of ${number(all)} ${this.kind}s shown` +
      (all > this.found.length ? `; ${number(all - this.found.length)} hidden by the search` : "") +
      (left ? `; ${number(left)} more below` : "");
    this.more.hidden = !left;
    this.more.textContent = `Show ${number(Math.min(this.page, left))} more`;
  }

  refresh(query, linked) {
    [this.found, this.shown, this.linked] = [this.matching(query), 0, linked];
    const columns = this.data.columns.map((name) => element("span", `of-${name}`, name));
    this.list.replaceChildren(element("div", `heads of-${this.kind}s`, ...(this.kind === "tag" ? [element("span", "", "number")] : []), ...columns));
    if (linked >= 0) {
      const made = this.row(linked);
      made.classList.add("linked");
      this.list.append(made);
      this.open(made, linked);
      made.open = true;
    }
    this.grow();
  }
}

const parts = (...ids) => ids.map((id) => document.getElementById(id));
const describe = (place) => ` ${texts(tag.cells[place].slice(1, 5)).join(" ")}`;
const lists = {
  tag: new List("tag", tag, 100, parts("count", "list", "more"), (_, links) =>
    links.map((other) => element("div", "", "derived from or a derivative: ", link(`#tag-${other}`, `#${other}`), describe(other)))),
  instruction: new List("instruction", instruction, 20, parts("instruction-count", "instruction-list", "instruction-more"), (place, links) =>
    links.length ? [element("div", "", strings[instruction.cells[place][1]] === "fusion" ? "holds " : "in ",
      ...links.flatMap((other) => [toInstruction(other), " "]))] : []),
};

function refresh(linked = {}) {
  for (const [kind, list] of Object.entries(lists)) list.refresh(search.value, linked[kind] ?? -1);
  const found = Object.entries(lists).map(([kind, list]) => link(`#${kind}s-found`, `${number(list.found.length)} ${kind}s`));
  summary.replaceChildren(found[0], ", ", found[1]);
}

// --- Rows of time and memory ---

function table(title, columns, cells) {
  const head = columns.map(([name, kind]) => Object.assign(element("th", kind, name), { scope: "col" }));
  const body = cells.map((each) => element("tr", "", ...each.map((cell, column) => element("td", columns[column][1], cell))));
  const made = element("table", "", element("caption", "", title), element("thead", "", element("tr", "", ...head)), element("tbody", "", ...body));
  return element("div", "scroll", made);
}

const contents = new Map(rows.map((row) => [JSON.stringify(row.of), row]));
const beside = (title, hidden) => hidden ? `${title}; ${number(hidden)} more are hidden` : title;

function fill(row) {
  if (row.children.length > 1) return;
  const { key, value, query } = row.dataset;
  const { instructions, lines, buffers, more } = contents.get(JSON.stringify([key, value]));
  const made = element("div", "inside");
  const amount = instructions.some(([, text]) => strings[text]) ? [["time here", "number"]] : [];
  const cut = (each) => amount.length ? each : each.slice(0, -1);
  const about = (place) => texts(instruction.cells[place]);
  const inTable = ([place, seconds]) => [toInstruction(place), about(place)[1], about(place)[2], ...about(place).slice(6, 8), strings[seconds]];
  const columns = [["instruction", "name"], ["opcode", ""], ["operation", ""], ["flops", "number"], ["bytes", "number"], ...amount];
  if (instructions.length) made.append(table(beside("Instructions", more[0]), columns, instructions.map((each) => cut(inTable(each)))));
  const code = ([place, text, seconds]) => cut([strings[place].replace(/^.*[/]/, ""), element("code", "", strings[text]), strings[seconds]]);
  if (lines.length) made.append(table(beside("Lines", more[1]), [["line", "name"], ["source", ""], ...amount], lines.map(code)));
  const kinds = [["value of", "name"], ["type", ""], ["bytes", "number"], ["phase", ""], ["line", ""]];
  if (buffers.length) made[row.closest("#memory") ? "prepend" : "append"](table(beside("In memory at the peak", more[2]), kinds, buffers.map(texts)));
  if (query) made.append(element("p", "", link(`#search=${encodeURIComponent(query)}`, `Every tag and instruction of ${query}`)));
  row.append(made);
}

for (const row of document.querySelectorAll("details.row")) row.addEventListener("toggle", () => row.open && fill(row));

// --- Addresses and keys ---

// In a frame of a notebook, addresses are relative to the notebook's.
const isFramed = location.protocol === "about:";

function follow(hash) {
  const [, kind, place] = /^#(tag|instruction)-(\d+)$/.exec(hash) ?? [];
  const query = /^#search=(.*)$/.exec(hash);
  if (query) search.value = decodeURIComponent(query[1]);
  const is = kind && place < lists[kind].data.order.length;
  refresh(is ? { [kind]: Number(place) } : {});
  if (is) {
    const row = document.getElementById(`${kind}-${place}`);
    row.scrollIntoView();
    row.firstChild.focus({ preventScroll: true });
  }
  if (query) document.getElementById("every").scrollIntoView();
}

search.addEventListener("input", () => {
  if (!isFramed) history.replaceState(null, "", search.value ? `#search=${encodeURIComponent(search.value)}` : "#");
  refresh();
});
addEventListener("hashchange", () => follow(location.hash));
addEventListener("click", (event) => {
  const hash = isFramed && event.target.closest("a")?.getAttribute("href");
  if (!hash) return;
  event.preventDefault();
  follow(hash);
  document.getElementById(hash.slice(1))?.scrollIntoView();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === search) return;
  event.preventDefault();
  search.focus();
});
follow(location.hash);
document.documentElement.dataset.ready = "true";
