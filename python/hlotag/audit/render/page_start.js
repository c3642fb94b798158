// SPDX-License-Identifier: Apache-2.0
// Input, and what happens when the page opens.

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
