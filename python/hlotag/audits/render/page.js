// Lists the tags and searches them. The texts in the data are the user's, so they enter the document only as text.
const { columns, order, cells, about, links, strings } = JSON.parse(document.getElementById("data").textContent);
const PAGE = 100;
const [search, count, list, more] = ["search", "count", "list", "more"].map((id) => document.getElementById(id));
let [found, shown, linked, haystack] = [order, 0, -1, null];

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const number = (value) => value.toLocaleString("en");

function link(tag) {
  const made = element("a", "", `#${tag}`);
  made.href = `#tag-${tag}`;
  return made;
}

function open(row, tag) {
  if (row.children.length > 1) return;
  const texts = about[tag].map((text) => element("div", "", strings[text]));
  const related = links[tag].map((other) => element("div", "", "derived from or a derivative: ", link(other), ` ${cells[other].slice(1, 5).map((text) => strings[text]).join(" ")}`));
  row.append(element("div", "about", ...texts, ...related));
}

function row(tag) {
  const texts = cells[tag].map((text, column) => element("span", `of-${columns[column]}`, strings[text]));
  texts[0].classList.add("state", texts[0].textContent);
  const made = element("details", "tag", element("summary", "", link(tag), ...texts));
  made.id = `tag-${tag}`;
  made.addEventListener("toggle", () => made.open && open(made, tag));
  return made;
}

function matching(query) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return order;
  haystack ??= order.map((tag) => [`#${tag}`, ...[...cells[tag], ...about[tag]].map((text) => strings[text])].join("\n").toLowerCase());
  return order.filter((_, place) => wanted.every((word) => haystack[place].includes(word)));
}

function grow() {
  const rest = found.slice(shown, shown + PAGE);
  list.append(...rest.filter((tag) => tag !== linked).map(row));
  shown += rest.length;
  const [hidden, left] = [order.length - found.length, found.length - shown];
  count.textContent = `${number(shown)} of ${number(order.length)} tags shown` +
    (hidden ? `; ${number(hidden)} hidden by the search` : "") + (left ? `; ${number(left)} more below` : "");
  more.hidden = !left;
  more.textContent = `Show ${number(Math.min(PAGE, left))} more`;
}

function refresh() {
  [found, shown] = [matching(search.value), 0];
  list.replaceChildren();
  if (linked >= 0) {
    const made = row(linked);
    made.classList.add("linked");
    list.append(made);
    open(made, linked);
    made.open = true;
  }
  grow();
}

function follow() {
  const tag = /^#tag-(\d+)$/.exec(location.hash);
  const query = /^#search=(.*)$/.exec(location.hash);
  linked = tag && tag[1] < order.length ? Number(tag[1]) : -1;
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
