// SPDX-License-Identifier: Apache-2.0
"use strict";
// The texts in the data are the user's: they reach the document through textContent and the canvas only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { strings, ops, tags, states, stages } = data;
  const N = ops.x.length, T = tags.key.length, [W, H] = data.box;
  const $ = (id) => document.getElementById(id);
  const text = (index) => strings[index];
  const element = (name, className, content) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (content !== undefined) e.textContent = content;
    return e;
  };

  // --- What the tags say of each operation ---------------------------------------------------------------------------
  const SIGNS = { attached: "●", completed: "◐", propagated: "↗", kept: "✓", duplicated: "⊞", merged: "∪", restored: "↻", moved: "⇢", cse: "=", folded: "∅", dead: "†", lost: "✕" };
  const stateOf = new Uint8Array(T);
  const tagsOf = Array.from({ length: N }, () => []);
  const worst = new Int16Array(N).fill(-1); // Of the tags on an operation, the state that needs most attention.
  const groups = new Map(); // By key and value.
  const groupOf = new Int32Array(T);
  for (let t = 0; t < T; t++) {
    const steps = tags.steps[t], op = tags.op[t];
    stateOf[t] = steps[steps.length - 1][1];
    tagsOf[op].push(t);
    if (worst[op] < 0 || states[stateOf[t]][3] < states[worst[op]][3]) worst[op] = stateOf[t];
    const label = `${text(tags.key[t])}=${text(tags.value[t])}`;
    if (!groups.has(label)) groups.set(label, { label, id: groups.size, count: 0 });
    const group = groups.get(label);
    group.count++;
    groupOf[t] = group.id;
  }
  const groupList = [...groups.values()];
  [...groupList].sort((a, b) => b.count - a.count).forEach((group, rank) => { group.rank = rank; });
  const base = (path) => path.slice(path.lastIndexOf("/") + 1);
  const sourceOf = (op) => (ops.line[op] ? `${base(text(ops.file[op]))}:${ops.line[op]}` : "");
  const users = Array.from({ length: N }, () => []);
  for (let op = 0; op < N; op++) for (const operand of ops.operands[op]) users[operand].push(op);
  const shortName = (op) => text(ops.name[op]).replace(/^(stablehlo|func)\./, "");
  const needsAttention = (state) => state === "lost" || state === "moved";
  let haystacks = null; // Made when somebody searches.
  const haystack = (op) => {
    haystacks ??= new Array(N);
    return (haystacks[op] ??= [text(ops.name[op]), text(ops.scope[op]), text(ops.function[op]), sourceOf(op), ...ops.instructions[op].map(text),
      ...tagsOf[op].map((t) => groupList[groupOf[t]].label)].join("\n").toLowerCase());
  };

  // --- Colours -----------------------------------------------------------------------------------------------------------
  // Both sets keep their distance under the common forms of colour blindness (after Paul Tol and Okabe-Ito); signs repeat what they say.
  const TAG_COLOURS = ["#4477aa", "#ddaa33", "#228833", "#aa3377", "#66ccee", "#997700", "#88ccaa", "#9988dd"];
  const OTHER = "#9aa0a6";
  const STATE_COLOURS = { lost: "#d55e00", moved: "#e69f00", kept: "#009e73", duplicated: "#44aa99", merged: "#117733", restored: "#0072b2", attached: "#56b4e9", completed: "#88bbdd", propagated: "#6699cc", cse: "#999999", folded: "#bbbbbb", dead: "#777777" };
  const tagColour = (t) => TAG_COLOURS[groupList[groupOf[t]].rank] ?? OTHER;
  const isLight = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).reduce((sum, c, i) => sum + c * [0.299, 0.587, 0.114][i], 0) > 140;
  let colourBy = "tag", theme = {};
  const coloursOf = (op) => (colourBy === "tag" ? [...new Set(tagsOf[op].map(tagColour))] : worst[op] < 0 ? [] : [STATE_COLOURS[states[worst[op]][0]]]);
  let fills = [];

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

  // --- The graph ---------------------------------------------------------------------------------------------------------------
  const canvas = $("graph"), ink = canvas.getContext("2d");
  const view = { x: 0, y: 0, zoom: 1 }; // The world's point at the upper left corner, and pixels for each unit.
  let width = 0, height = 0, queued = false;
  const STRIP = 16; // The overview at the right edge.
  const byY = Array.from({ length: N }, (_, op) => op).sort((a, b) => ops.y[a] - ops.y[b]);
  const firstBelow = (y) => {
    let low = 0, high = N;
    while (low < high) { const middle = (low + high) >> 1; if (ops.y[byY[middle]] < y) low = middle + 1; else high = middle; }
    return low;
  };
  const draw = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  function paint() {
    queued = false;
    const ratio = window.devicePixelRatio || 1;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.fillStyle = theme.paper;
    ink.fillRect(0, 0, width, height);
    paintBands();
    const visible = [];
    for (let i = firstBelow(view.y - H); i < N && ops.y[byY[i]] < view.y + height / view.zoom; i++) {
      const op = byY[i], x = (ops.x[op] - view.x) * view.zoom;
      if (x < width && x + W * view.zoom > 0) visible.push(op);
    }
    if (visible.length < 1500) paintEdges(visible);
    paintNodes(visible);
    if (selected >= 0) paintSelection();
    paintStrip();
  }
  const screenX = (x) => (x - view.x) * view.zoom, screenY = (y) => (y - view.y) * view.zoom;
  function paintBands() {
    ink.textBaseline = "middle";
    for (const [label, y, h] of data.bands) {
      const top = screenY(y), tall = h * view.zoom;
      if (top > height || top + tall < 0) continue;
      ink.fillStyle = theme.band;
      ink.fillRect(screenX(-14), top - 6 * view.zoom, (data.size[0] + 28) * view.zoom, tall + 12 * view.zoom);
      if (tall < 18) continue;
      ink.fillStyle = theme.soft;
      ink.font = `600 ${Math.max(9, Math.min(13, 13 * view.zoom))}px ${theme.font}`;
      // The label stays in sight while its band does.
      ink.fillText(clip(label, Math.max(60, (data.middle - 40) * view.zoom)), Math.max(6, screenX(0)), Math.min(Math.max(top + 8 * view.zoom, 24), top + tall - 6));
    }
    if (view.zoom > 0.05) {
      ink.fillStyle = theme.faint;
      ink.font = `600 11px ${theme.font}`;
      for (const [label, x] of [["FORWARD", 0], ["BACKWARD", data.middle]]) if (label === "FORWARD" || hasBackward) ink.fillText(label, Math.max(6, screenX(x)), 10);
    }
  }
  const hasBackward = ops.backward.some(Boolean);
  function paintEdges(visible) {
    ink.strokeStyle = theme.edge;
    ink.globalAlpha = 0.35;
    ink.lineWidth = Math.min(1, view.zoom * 1.5);
    ink.beginPath();
    for (const op of visible) for (const operand of ops.operands[op]) curve(operand, op);
    ink.stroke();
    ink.globalAlpha = 1;
  }
  function curve(from, to) {
    const x1 = screenX(ops.x[from] + W / 2), y1 = screenY(ops.y[from] + H), x2 = screenX(ops.x[to] + W / 2), y2 = screenY(ops.y[to]);
    const bend = Math.max(10 * view.zoom, Math.min(80 * view.zoom, Math.abs(y2 - y1) / 2));
    ink.moveTo(x1, y1);
    ink.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
  }
  function paintNodes(visible) {
    const w = Math.max(1.2, W * view.zoom), h = Math.max(1.2, H * view.zoom), far = h < 5, named = h > 10;
    // One path for each colour: a canvas is slow at changing colours, not at rectangles.
    const paths = new Map();
    for (const op of visible) {
      const key = `${shown[op]}${fills[op].length ? fills[op].join() : "-"}`;
      if (!paths.has(key)) paths.set(key, []);
      paths.get(key).push(op);
    }
    for (const [key, members] of paths) {
      const colours = fills[members[0]];
      ink.globalAlpha = key[0] === "1" ? 1 : 0.14;
      (colours.length ? colours : [theme.node]).forEach((colour, i, all) => {
        ink.fillStyle = colour;
        ink.beginPath();
        for (const op of members) {
          const x = screenX(ops.x[op]), y = screenY(ops.y[op]), part = w / all.length;
          if (far || all.length > 1) ink.rect(x + i * part, y, part, h);
          else ink.roundRect(x, y, w, h, Math.min(5, h / 4));
        }
        ink.fill();
        if (!colours.length && !far) { ink.strokeStyle = theme.nodeLine; ink.lineWidth = 1; ink.stroke(); }
      });
      if (named) paintNames(members, colours, h);
    }
    ink.globalAlpha = 1;
    paintMarks(visible, w, h, named);
  }
  function paintNames(members, colours, h) {
    const size = Math.min(15, h * 0.52);
    ink.font = `${size}px ${theme.mono}`;
    ink.fillStyle = colours.length ? (isLight(colours[0]) ? "#14181d" : "#ffffff") : theme.ink;
    const room = Math.floor(((W - 26) * view.zoom) / (size * 0.61));
    for (const op of members) {
      const name = shortName(op);
      ink.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, screenX(ops.x[op]) + 6 * view.zoom, screenY(ops.y[op]) + h / 2);
    }
  }
  function paintMarks(visible, w, h, named) {
    ink.textAlign = "center";
    for (const op of visible) {
      if (worst[op] < 0 || !shown[op]) continue;
      const state = states[worst[op]][0], urgent = needsAttention(state), x = screenX(ops.x[op]), y = screenY(ops.y[op]);
      if (urgent) {
        // However far away: what needs attention can be seen.
        ink.strokeStyle = state === "lost" ? theme.bad : theme.warn;
        ink.lineWidth = h < 5 ? 2 : 2.5;
        const grow = Math.max(2, (6 - h) / 2);
        ink.strokeRect(x - grow, y - grow, w + 2 * grow, h + 2 * grow);
      }
      if (!named) continue;
      const radius = h * 0.34;
      ink.fillStyle = urgent ? (state === "lost" ? theme.bad : theme.warn) : theme.paper;
      ink.beginPath();
      ink.arc(x + w - h / 2, y + h / 2, radius, 0, 7);
      ink.fill();
      ink.fillStyle = urgent ? theme.paper : theme.ink;
      ink.font = `700 ${radius * 1.35}px ${theme.font}`;
      ink.fillText(SIGNS[state], x + w - h / 2, y + h / 2 + radius * 0.08);
    }
    ink.textAlign = "left";
  }
  function paintSelection() {
    ink.strokeStyle = theme.focus;
    ink.lineWidth = 1.6;
    ink.beginPath();
    for (const operand of ops.operands[selected]) curve(operand, selected);
    for (const user of users[selected]) curve(selected, user);
    ink.stroke();
    ink.lineWidth = 3;
    const pad = 3;
    ink.strokeRect(screenX(ops.x[selected]) - pad, screenY(ops.y[selected]) - pad, Math.max(4, W * view.zoom) + 2 * pad, Math.max(4, H * view.zoom) + 2 * pad);
  }
  function paintStrip() {
    const scale = height / data.size[1], left = width - STRIP;
    ink.fillStyle = theme.panel;
    ink.fillRect(left, 0, STRIP, height);
    for (let op = 0; op < N; op++) {
      if (worst[op] < 0 || !shown[op]) continue;
      const state = states[worst[op]][0];
      if (!needsAttention(state) && !anyFilter()) continue;
      ink.fillStyle = state === "lost" ? theme.bad : state === "moved" ? theme.warn : theme.faint;
      ink.fillRect(left + 3, ops.y[op] * scale - 1, STRIP - 6, 2);
    }
    ink.strokeStyle = theme.focus;
    ink.lineWidth = 1.5;
    ink.strokeRect(left + 1, Math.max(1, view.y * scale), STRIP - 2, Math.max(6, Math.min(height, (height / view.zoom) * scale) - 2));
  }
  const clip = (label, room) => {
    let low = 0, high = label.length;
    if (ink.measureText(label).width <= room) return label;
    while (low < high) { const middle = (low + high + 1) >> 1; if (ink.measureText(`${label.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1; }
    return `${label.slice(0, low)}…`;
  };
  const usable = () => width - STRIP;
  function fit() {
    const wide = hasBackward ? data.size[0] : data.middle;
    const all = Math.min(usable() / (wide + 40), height / (data.size[1] + 60));
    // A large module would be dust: rather its whole width, from the top.
    view.zoom = Math.max(all, Math.min(1, (usable() / (wide + 40)) * 0.98));
    view.x = -Math.max(20, (usable() / view.zoom - wide) / 2);
    view.y = -30 / view.zoom;
    draw();
  }
  function zoomAt(x, y, factor) {
    const zoom = Math.min(4, Math.max(Math.min(0.02, height / (data.size[1] + 60)), view.zoom * factor));
    view.x += x / view.zoom - x / zoom;
    view.y += y / view.zoom - y / zoom;
    view.zoom = zoom;
    draw();
  }
  function revealInGraph(op) {
    const x = screenX(ops.x[op]), y = screenY(ops.y[op]);
    if (x > 0 && y > 20 && x + W * view.zoom < usable() && y + H * view.zoom < height && H * view.zoom > 8) return;
    view.zoom = Math.max(view.zoom, 0.6);
    view.x = ops.x[op] + W / 2 - usable() / 2 / view.zoom;
    view.y = ops.y[op] + H / 2 - height / 2 / view.zoom;
  }
  function opAt(x, y) {
    const wx = view.x + x / view.zoom, wy = view.y + y / view.zoom, slack = Math.max(0, 4 / view.zoom - H / 2);
    for (let i = firstBelow(wy - H - slack); i < N && ops.y[byY[i]] <= wy + slack; i++) {
      const op = byY[i];
      if (wx >= ops.x[op] - slack && wx <= ops.x[op] + W + slack) return op;
    }
    return -1;
  }

  // --- Input ---------------------------------------------------------------------------------------------------------------------
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, moved: false, strip: event.offsetX > usable() };
    if (drag.strip) jump(event.offsetY);
  });
  const jump = (y) => { view.y = (y / height) * data.size[1] - height / view.zoom / 2; draw(); };
  canvas.addEventListener("pointermove", (event) => {
    if (drag?.strip) { jump(event.offsetY); return; }
    if (drag) {
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
      view.x -= dx / view.zoom;
      view.y -= dy / view.zoom;
      drag = { ...drag, x: event.offsetX, y: event.offsetY, moved: true };
      draw();
    }
    const op = drag ? -1 : opAt(event.offsetX, event.offsetY), tip = $("tip");
    tip.hidden = op < 0;
    if (op < 0) return;
    tip.textContent = [text(ops.name[op]), sourceOf(op), ...tagsOf[op].map((t) => `${groupList[groupOf[t]].label}: ${states[stateOf[t]][1]}`)].filter(Boolean).join("  ·  ");
    tip.style.left = `${Math.min(event.offsetX + 14, width - 260)}px`;
    tip.style.top = `${event.offsetY + 18}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved && !drag.strip) select(opAt(event.offsetX, event.offsetY), { reveal: false });
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 20 : 1;
    if (event.ctrlKey || event.metaKey) zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY * unit * 0.01));
    else { view.x += (event.deltaX * unit) / view.zoom; view.y += (event.deltaY * unit) / view.zoom; draw(); }
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 80 / view.zoom;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (!by) return;
    view.x += by[0];
    view.y += by[1];
    event.preventDefault();
    draw();
  });
  const middleZoom = (factor) => zoomAt(usable() / 2, height / 2, factor);
  $("fit").addEventListener("click", fit);
  $("in").addEventListener("click", () => middleZoom(1.4));
  $("out").addEventListener("click", () => middleZoom(1 / 1.4));
  $("list").addEventListener("scroll", drawList, { passive: true });
  $("list").addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor($("list").clientHeight / ROW) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    moveSelection(Number.isFinite(by) ? by : by > 0 ? order.length : -order.length);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      if (selected >= 0) select(-1);
      else { $("filter").reset(); readFilter(); }
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => $("search").focus(), f: fit, "+": () => middleZoom(1.4), "=": () => middleZoom(1.4), "-": () => middleZoom(1 / 1.4) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  function readFilter() {
    filter.words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const name of ["tag", "state", "phase"]) filter[name] = $(name).value;
    for (const name of ["scope", "source"]) filter[name] = $(name).value.trim().toLowerCase();
    if (colourBy !== $("colour").value) { colourBy = $("colour").value; recolour(); }
    applyFilter();
  }
  let waiting = 0;
  $("filter").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(readFilter, N > 5000 ? 120 : 0); });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

  // --- Start -----------------------------------------------------------------------------------------------------------------------
  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "panel", "ink", "soft", "faint", "node", "edge", "focus", "band", "bad", "warn"]) theme[name] = style.getPropertyValue(`--${name}`).trim();
    theme.nodeLine = style.getPropertyValue("--node-line").trim();
    theme.font = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    theme.mono = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
    draw();
  }
  function recolour() {
    fills = Array.from({ length: N }, (_, op) => coloursOf(op));
    const entries = colourBy === "tag"
      ? [...groupList].sort((a, b) => a.rank - b.rank).slice(0, TAG_COLOURS.length).map((g) => [TAG_COLOURS[g.rank], g.label])
      : states.filter(([id], s) => stateOf.includes(s)).map(([id, label]) => [STATE_COLOURS[id], `${SIGNS[id]} ${label}`]);
    if (colourBy === "tag" && groupList.length > TAG_COLOURS.length) entries.push([OTHER, `${groupList.length - TAG_COLOURS.length} more`]);
    $("legend").replaceChildren(...entries.map(([colour, label]) => {
      const entry = element("span"), swatch = element("span", "swatch");
      swatch.style.background = colour;
      entry.append(swatch, label);
      entry.title = label;
      return entry;
    }));
    $("legend").hidden = !entries.length;
  }
  const option = (value, label) => { const e = element("option", "", label); e.value = value; return e; };
  const number = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  $("title").textContent = data.name;
  $("facts").textContent = [number(T, "tag"), number(N, "operation"), data.instructions ? `${number(data.instructions, "instruction")} after XLA${data.platform && ` (${data.platform})`}` : "not compiled"].join(" · ");
  states.map((state, s) => [...state, s]).sort((a, b) => a[3] - b[3]).forEach(([id, label, meaning, , s]) => {
    const count = stateOf.reduce((sum, state) => sum + (state === s), 0);
    if (!count) return;
    const chip = element("button", "chip");
    chip.type = "button";
    chip.dataset.state = id;
    chip.title = meaning;
    chip.append(stateMark(s), element("span", "", label), element("b", "", count.toLocaleString("en")));
    chip.addEventListener("click", () => { $("state").value = filter.state === id ? "" : id; readFilter(); });
    $("chips").append(chip);
    $("state").append(option(id, `${label} (${count})`));
  });
  $("state").prepend(option("", "any"));
  $("tag").append(option("", "any"), option("-", "none"), ...[...groupList].sort((a, b) => (a.label < b.label ? -1 : 1)).map((g) => option(`=${g.label}`, `${g.label} (${g.count})`)));
  $("phase").append(option("", "both"), option("forward", "forward"), option("backward", "backward"));
  const distinct = (values) => [...new Set(values)].filter(Boolean).sort().slice(0, 2000).map((value) => option(value, value));
  $("scopes").append(...distinct(ops.scope.map(text)));
  $("sources").append(...distinct(Array.from({ length: N }, (_, op) => sourceOf(op))));
  $("filter").reset();
  const resize = () => {
    const box = $("stage").getBoundingClientRect(), ratio = window.devicePixelRatio || 1, first = !width;
    [width, height] = [box.width, box.height];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    if (first) fit();
    draw();
    drawList();
  };
  new ResizeObserver(resize).observe($("stage"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  recolour();
  resize();
  applyFilter();
  drawDetail();
  document.documentElement.dataset.ready = "true"; // For tests.
})();
