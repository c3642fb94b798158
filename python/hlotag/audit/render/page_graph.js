// SPDX-License-Identifier: Apache-2.0
// The graph.

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
