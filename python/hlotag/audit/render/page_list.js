// SPDX-License-Identifier: Apache-2.0
// The filter, the list of operations and the details of the selected one.

// --- Filter and selection ------------------------------------------------------------------------------------------------
const filter = { words: [], tag: "", state: "", phase: "", scope: "", source: "" };
let shown = new Uint8Array(N), order = [], selected = -1;
const anyFilter = () => filter.words.length || filter.tag || filter.state || filter.phase || filter.scope || filter.source;
function matches(op) {
  const own = tagsOf[op];
  if (filter.tag === "-" ? own.length : filter.tag && !own.some((t) => groupList[groupOf[t]].label === filter.tag.slice(1))) return false;
  if (filter.state && !own.some((t) => states[stateOf[t]][0] === filter.state && (!filter.tag || groupList[groupOf[t]].label === filter.tag.slice(1)))) return false;
  if (filter.phase && (filter.phase === "backward") !== Boolean(ops.backward[op])) return false;
  if (filter.scope && !text(ops.scope[op]).toLowerCase().includes(filter.scope)) return false;
  if (filter.source && !`${text(ops.file[op])}:${ops.line[op]}`.toLowerCase().endsWith(filter.source) && !sourceOf(op).toLowerCase().includes(filter.source)) return false;
  return filter.words.every((word) => haystack(op).includes(word));
}
const byAttention = Array.from({ length: N }, (_, op) => op);
const rank = (op) => (worst[op] < 0 ? 99 : states[worst[op]][3]);
byAttention.sort((a, b) => rank(a) - rank(b) || a - b);
function applyFilter() {
  order = [];
  let tagged = 0;
  for (const op of byAttention) {
    shown[op] = matches(op) ? 1 : 0;
    if (!shown[op]) continue;
    order.push(op);
    if (tagsOf[op].length) tagged++;
  }
  const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  $("count").textContent = `${plural(order.length, "operation")}, ${tagged.toLocaleString("en")} with tags`;
  for (const chip of $("chips").children) chip.setAttribute("aria-pressed", String(chip.dataset.state === filter.state));
  $("state").value = filter.state;
  $("list").scrollTop = 0;
  drawList();
  draw();
}
function select(op, { reveal = true } = {}) {
  selected = op;
  drawList();
  drawDetail();
  if (op >= 0 && reveal) revealInGraph(op);
  draw();
}

// --- The list: only the rows that can be seen are in the document ----------------------------------------------------------
const ROW = 46;
// Browsers limit an element's height: far down, rows are reached by proportion.
const MAX_HEIGHT = 8e6;
function drawList() {
  const list = $("list"), rows = $("rows");
  const full = order.length * ROW, height = Math.min(full, MAX_HEIGHT);
  rows.style.height = `${height}px`;
  const room = list.clientHeight, top = list.scrollTop;
  const offset = height > room ? (top / (height - room)) * (full - room) : 0;
  const first = Math.max(0, Math.floor(offset / ROW) - 2), last = Math.min(order.length, Math.ceil((offset + room) / ROW) + 2);
  const found = [];
  for (let i = first; i < last; i++) found.push(row(order[i], i, i * ROW - offset + top));
  rows.replaceChildren(...found);
  const at = order.indexOf(selected);
  if (at >= first && at < last) list.setAttribute("aria-activedescendant", `row-${selected}`);
  else list.removeAttribute("aria-activedescendant");
}
function row(op, index, top) {
  const e = element("div", "row");
  e.id = `row-${op}`;
  e.style.top = `${top}px`;
  e.setAttribute("role", "option");
  e.setAttribute("aria-selected", String(op === selected));
  e.setAttribute("aria-posinset", String(index + 1));
  e.setAttribute("aria-setsize", String(order.length));
  e.append(stateMark(worst[op]));
  const first = element("div");
  if (!tagsOf[op].length) first.append(element("span", "hint", "no tag"));
  tagsOf[op].forEach((t, i) => {
    const swatch = element("span", "swatch");
    swatch.style.background = tagColour(t);
    first.append(i ? document.createTextNode("  ") : "", swatch, element("span", "mono", groupList[groupOf[t]].label));
  });
  e.append(first, element("div", "second", [shortName(op), sourceOf(op), ops.backward[op] ? "backward" : "", text(ops.scope[op])].filter(Boolean).join(" · ")));
  e.addEventListener("click", () => select(op));
  return e;
}
function stateMark(state) {
  if (state < 0) return element("span", "mark", "");
  const mark = element("span", `mark ${states[state][0]}`, SIGNS[states[state][0]]);
  mark.title = states[state][1];
  return mark;
}
function moveSelection(by) {
  if (!order.length) return;
  const at = order.indexOf(selected);
  const next = Math.min(order.length - 1, Math.max(0, at < 0 ? 0 : at + by));
  const list = $("list"), full = order.length * ROW, height = Math.min(full, MAX_HEIGHT), room = list.clientHeight;
  const scale = full > height ? (height - room) / (full - room) : 1;
  if (next * ROW * scale < list.scrollTop) list.scrollTop = next * ROW * scale;
  if ((next + 1) * ROW * scale > list.scrollTop + room) list.scrollTop = (next + 1) * ROW * scale - room;
  select(order[next]);
}

// --- Details -------------------------------------------------------------------------------------------------------------
function drawDetail() {
  const box = $("detail");
  box.scrollTop = 0;
  if (selected < 0) { box.replaceChildren(...overview()); return; }
  const op = selected, file = text(ops.file[op]), place = `${file}:${ops.line[op]}`;
  const facts = element("dl");
  const fact = (name, value) => { if (value) facts.append(element("dt", "", name), element("dd", "mono", value)); };
  fact("phase", ops.backward[op] ? "backward" : "forward");
  fact("scope", text(ops.scope[op]));
  fact("function", text(ops.function[op]));
  fact("source", ops.line[op] ? place : "");
  const parts = [element("h2", "mono", text(ops.name[op])), facts];
  if (data.lines[place]) parts.push(element("pre", "mono", data.lines[place]));
  for (const t of tagsOf[op]) parts.push(...way(t));
  if (!tagsOf[op].length) parts.push(element("p", "hint", "This operation has no tag."));
  for (const [key, value, instruction, opcode, from] of data.strays) {
    if (from !== op) continue;
    parts.push(element("p", "hint", `${key}=${value} is on ${opcode} ${instruction}, which does not have it in the program.`));
  }
  const names = ops.instructions[op].map(text);
  parts.push(element("h3", "", names.length ? `Instructions after XLA (${names.length})` : "Instructions after XLA"));
  parts.push(element("p", names.length ? "mono" : "hint", names.slice(0, 40).join(", ") || (data.instructions ? "none: the operation is gone" : "not compiled")));
  for (const [title, others] of [["Operands", ops.operands[op]], ["Used by", users[op]]]) {
    if (!others.length) continue;
    const links = element("div", "links");
    for (const other of others.slice(0, 60)) {
      const link = element("button", "mono", shortName(other) + (sourceOf(other) ? ` ${sourceOf(other)}` : ""));
      link.type = "button";
      link.addEventListener("click", () => select(other));
      links.append(link);
    }
    parts.push(element("h3", "", `${title} (${others.length})`), links);
  }
  box.replaceChildren(...parts);
}
function way(t) {
  const heading = element("h3");
  const swatch = element("span", "swatch");
  swatch.style.background = tagColour(t);
  heading.append(swatch, element("span", "mono", groupList[groupOf[t]].label));
  const list = element("ol", "way");
  for (const [stage, state, by, detail, confidence, instructions] of tags.steps[t]) {
    const item = element("li");
    const line = element("div");
    line.append(element("span", "stage", stages[stage]), ": ", element("span", states[state][0], states[state][1]));
    item.append(stateMark(state), line);
    const who = [text(by) && `by ${text(by)}`, text(detail), confidence !== null && `confidence ${confidence}`].filter(Boolean).join("; ");
    item.append(element("div", "by", who || states[state][2]));
    if (instructions.length) item.append(element("div", "by mono", instructions.slice(0, 12).map(text).join(", ") + (instructions.length > 12 ? ", …" : "")));
    list.append(item);
  }
  return [heading, list];
}
function overview() {
  const parts = [element("h2", "", "Where the tags went")];
  const list = element("ul", "way");
  states.forEach(([id, label, meaning], s) => {
    const count = stateOf.reduce((sum, state) => sum + (state === s), 0);
    if (!count) return;
    const item = element("li");
    const line = element("div");
    line.append(element("span", `stage ${id}`, `${label}: ${count.toLocaleString("en")}`));
    item.append(stateMark(s), line, element("div", "by", meaning));
    list.append(item);
  });
  parts.push(list);
  if (data.strays.length) parts.push(element("p", "", `${data.strays.length} on instructions that do not have them in the program.`));
  if (data.dropped.length) parts.push(element("h3", "", "Tags that no operation could take"));
  for (const [attrs, place] of data.dropped) parts.push(element("p", "mono", `${Object.entries(attrs).map(([k, v]) => `${k}=${v}`).join(", ")} ${place && `at ${place}`}`));
  for (const note of data.notes) parts.push(element("p", "hint", note));
  const keys = element("p", "keys");
  for (const [key, what] of [["/", "search"], ["↑ ↓", "next operation"], ["f", "show all"], ["+ −", "zoom"], ["Esc", "clear"]]) keys.append(element("kbd", "", key), ` ${what}  `);
  parts.push(element("p", "hint", "Select an operation in the graph or in the list."), keys);
  return parts;
}
