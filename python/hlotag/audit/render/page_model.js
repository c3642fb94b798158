// SPDX-License-Identifier: Apache-2.0
// The audit's data, and what they say of each operation.

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
const SIGNS = { attached: "●", completed: "◐", propagated: "↗", kept: "✓", duplicated: "⊞", merged: "∪", restored: "↻", moved: "⇢", cse: "=", folded: "∅", dead: "†", lost: "✕", unknown: "?" };
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
const STATE_COLOURS = { lost: "#d55e00", moved: "#e69f00", kept: "#009e73", duplicated: "#44aa99", merged: "#117733", restored: "#0072b2", attached: "#56b4e9", completed: "#88bbdd", propagated: "#6699cc", cse: "#999999", folded: "#bbbbbb", dead: "#777777", unknown: "#cc79a7" };
const tagColour = (t) => TAG_COLOURS[groupList[groupOf[t]].rank] ?? OTHER;
const isLight = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).reduce((sum, c, i) => sum + c * [0.299, 0.587, 0.114][i], 0) > 140;
let colourBy = "tag", theme = {};
const coloursOf = (op) => (colourBy === "tag" ? [...new Set(tagsOf[op].map(tagColour))] : worst[op] < 0 ? [] : [STATE_COLOURS[states[worst[op]][0]]]);
let fills = [];
