// Lists the tags with their steps. The texts in the data are the user's, so they enter the document only as text.
const data = JSON.parse(document.getElementById("data").textContent);
const { strings, states, tags, ops } = data;
const PAGE = 100;
const LINKS = 12;
const [search, count, list, more] = ["search", "count", "list", "more"].map((id) => document.getElementById(id));
let found = data.order;
let shown = 0;
let linked = -1;
let haystack = null;

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const text = (index) => strings[index];
const number = (value) => value.toLocaleString("en");
const stateOf = (tag) => states[data.steps[tags.steps[tag]].at(-1)[1]];
const tagText = (tag) => `${text(tags.key[tag])}=${text(tags.value[tag])}`;
const opText = (op) => `${text(ops.name[op])} ${text(ops.type[op])}`.trim();
const place = (op, whole) => {
  const file = text(ops.file[op]);
  return file ? `${whole ? file : file.split("/").at(-1)}:${ops.line[op]}` : "";
};
const namesOf = (indices) => indices.map(text).join(", ");

// By operation, its first tag, and the operations that are derived from it.
const firstTag = new Map();
tags.op.forEach((op, tag) => firstTag.has(op) || firstTag.set(op, tag));
const derivatives = new Map();
ops.derived.forEach((sources, op) => sources.forEach((source) => derivatives.set(source, [...(derivatives.get(source) ?? []), op])));

function links(operations) {
  const made = operations.slice(0, LINKS).map((op) => {
    const name = element("code", "", `${opText(op)} at ${place(op)}`);
    if (!firstTag.has(op)) return element("div", "", name);
    const link = element("a", "", name);
    link.href = `#tag-${firstTag.get(op)}`;
    return element("div", "", link);
  });
  return operations.length > LINKS ? [...made, `and ${operations.length - LINKS} more`] : made;
}

function words(tag) {
  const op = tags.op[tag];
  const steps = data.steps[tags.steps[tag]];
  const last = states[steps.at(-1)[1]];
  const names = [...tags.on[tag].flat(), ...ops.instructions[op], ...ops.fusions[op]];
  return [
    `#${tag}`, last[0], last[1], tagText(tag), opText(op), text(ops.scope[op]), place(op, true), text(ops.phase[op]),
    ...steps.flatMap((step) => [states[step[1]][1], text(step[2]), text(step[3])]), ...names.map(text),
  ].join("\n").toLowerCase();
}

function matching(query) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return data.order;
  haystack ??= data.order.map(words);
  return data.order.filter((_, row) => wanted.every((word) => haystack[row].includes(word)));
}

function stepsOf(tag) {
  const op = tags.op[tag];
  const made = element("dl", "steps");
  const add = (term, ...content) => made.append(element("dt", "", term), element("dd", "", ...content));
  const code = data.lines[`${text(ops.file[op])}:${ops.line[op]}`];
  const line = place(op, true);
  if (line) add("Your line", line, ...(code ? [element("pre", "code", code)] : []));
  const scope = text(ops.scope[op]);
  const within = [scope && `scope ${scope}`, `function ${text(ops.function[op])}`, text(ops.phase[op])];
  add("Operation", element("code", "", opText(op)), ` ${text(ops.work[op])}`, element("div", "dim", within.filter(Boolean).join(", ")));
  if (ops.derived[op].length) add(ops.derived[op].length === 1 ? "Derived from" : "Derived from one of", ...links(ops.derived[op]));
  if (derivatives.has(op)) add("Derivatives", ...links(derivatives.get(op)));
  data.steps[tags.steps[tag]].forEach(([form, state, by, detail, confidence], step) => {
    const on = tags.on[tag][step] ?? [];
    const parts = [element("span", `state ${states[state][0]}`, states[state][1])];
    if (text(by)) parts.push(" by ", element("code", "", text(by)));
    if (text(detail)) parts.push(`: ${text(detail)}`);
    if (confidence !== null && confidence < 1) parts.push(` (confidence ${confidence})`);
    if (on.length) parts.push(element("div", "", "on ", element("code", "", namesOf(on))));
    add(data.forms[form], ...parts, element("div", "dim", states[state][2]));
  });
  if (ops.instructions[op].length) add("Instructions", element("code", "", namesOf(ops.instructions[op])));
  if (ops.fusions[op].length) add("In fusions", element("code", "", namesOf(ops.fusions[op])));
  return made;
}

function row(tag) {
  const op = tags.op[tag];
  const state = stateOf(tag);
  const link = element("a", "", `#${tag}`);
  link.href = `#tag-${tag}`;
  const cell = (className, content) => element("span", className, content);
  const made = element("details", "tag", element("summary", "",
    link, cell(`state ${state[0]}`, state[1]), element("code", "name", tagText(tag)), element("code", "on", opText(op)),
    cell("phase", text(ops.phase[op])), cell("place", place(op)),
    cell("instruction", namesOf(ops.fusions[op].length ? ops.fusions[op] : ops.instructions[op]))));
  made.id = `tag-${tag}`;
  made.addEventListener("toggle", () => { if (made.open && made.children.length === 1) made.append(stepsOf(tag)); });
  return made;
}

function grow() {
  const rest = found.slice(shown, shown + PAGE);
  list.append(...rest.filter((tag) => tag !== linked).map(row));
  shown += rest.length;
  const [total, hidden, left] = [data.order.length, data.order.length - found.length, found.length - shown];
  count.textContent = `${number(shown)} of ${number(total)} tags shown` +
    (hidden ? `; ${number(hidden)} hidden by the search` : "") + (left ? `; ${number(left)} more below` : "");
  more.hidden = !left;
  more.textContent = `Show ${number(Math.min(PAGE, left))} more`;
}

function refresh() {
  found = matching(search.value);
  shown = 0;
  list.replaceChildren();
  if (linked >= 0) {
    const made = row(linked);
    made.classList.add("linked");
    list.append(made);
    made.append(stepsOf(linked));
    made.open = true;
  }
  grow();
}

function follow() {
  const tag = /^#tag-(\d+)$/.exec(location.hash);
  const query = /^#search=(.*)$/.exec(location.hash);
  linked = tag && tag[1] < data.order.length ? Number(tag[1]) : -1;
  if (query) search.value = decodeURIComponent(query[1]);
  refresh();
  if (linked >= 0) document.getElementById(`tag-${linked}`).scrollIntoView();
  if (query) document.getElementById("every").scrollIntoView();
}

more.addEventListener("click", grow);
search.addEventListener("input", () => {
  linked = -1;
  history.replaceState(null, "", search.value ? `#search=${encodeURIComponent(search.value)}` : "#");
  refresh();
});
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === search) return;
  event.preventDefault();
  search.focus();
});
follow();
document.documentElement.dataset.ready = "true";
