"use strict";
const rows = JSON.parse(document.getElementById("rows").textContent);
const body = document.querySelector("#tasks tbody"), head = document.querySelector("#tasks tr");
const words = document.getElementById("words"), more = document.getElementById("more");
const PAGE = 200;
// What needs a look comes first.
const rank = row => row.state === "completed" ? 1 : 0;
rows.sort((a, b) => rank(a) - rank(b));
// As `amount` of the page: a small one is not shown as nothing.
const amount = x => !x || x >= 1 ? x.toFixed(2)
  : x.toFixed(Math.min(20, Math.max(4, 1 - Math.floor(Math.log10(x)))));
const cost = row => row.costs.map(c => amount(c.amount) + " " + c.currency).join(" + ");
const bytes = n => !n ? "" : n < 10240 ? n.toLocaleString("en") + " B"
  : (n / 1024).toFixed(0) + " KiB";
const columns = [
  ["task", r => r.id, ""],
  ["state", r => r.state, "state"],
  ["model", r => r.model, "state"],
  ["runs", r => r.runs, "n"],
  ["time", r => r.seconds, "n", r => r.runs ? r.seconds.toFixed(1) + " s" : ""],
  ["tokens", r => r.input_tokens + r.output_tokens, "n",
    r => (r.input_tokens + r.output_tokens || "").toLocaleString("en")],
  ["cost", r => r.costs.reduce((sum, c) => sum + c.amount, 0), "n", cost],
  ["patch", r => r.patch_bytes, "n", r => bytes(r.patch_bytes)],
  ["records", r => r.folder, "state"],
  ["why", r => r.code, "why", r => r.code ? r.code + ": " + r.message : ""],
];
let chosen = new Set(), sorted = null, down = false, shown = PAGE;
function make(name, text, kind) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}
function link(row, file, text) {
  const node = make("a", text);
  node.href = row.folder.split("/").map(encodeURIComponent).join("/") + "/" +
    file.split("/").map(encodeURIComponent).join("/");
  return node;
}
function links(row) {
  const cell = make("td", undefined, "records");
  if (!row.folder) return cell;
  cell.append(link(row, "transcript.md", "transcript"), " ");
  if (row.patch_bytes) cell.append(link(row, "deliverables/changes.patch", "patch"), " ");
  for (const name of row.delivered)
    if (name !== "changes.patch") cell.append(link(row, "deliverables/" + name, name), " ");
  return cell;
}
function line(row) {
  const tr = make("tr");
  for (const [name, value, kind, text] of columns) {
    if (name === "records") { tr.append(links(row)); continue; }
    const cell = make("td", text ? text(row) : value(row), kind);
    if (name === "state") cell.prepend(make("i", undefined, row.state));
    tr.append(cell);
  }
  return tr;
}
function draw() {
  const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(row => (!chosen.size || chosen.has(row.state)) && parts.every(part =>
    (row.id + " " + row.model + " " + row.state + " " + row.code + " " + row.message)
      .toLowerCase().includes(part)));
  if (sorted !== null) {
    const value = columns[sorted][1], order = down ? -1 : 1;
    found.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * order);
  }
  body.replaceChildren(...found.slice(0, shown).map(line));
  more.hidden = found.length <= shown;
  document.getElementById("count").textContent =
    found.length === rows.length ? rows.length.toLocaleString("en") + " tasks"
      : found.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " tasks";
}
columns.forEach(([name, , kind], number) => {
  const cell = make("th", undefined, kind === "n" ? "n" : ""), button = make("button", name);
  button.onclick = () => {
    down = sorted === number ? !down : kind === "n";
    sorted = number;
    head.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    draw();
  };
  cell.append(button);
  head.append(cell);
});
document.querySelectorAll(".filters button").forEach(button => {
  button.onclick = () => {
    const state = button.dataset.state, on = !chosen.has(state);
    if (on) chosen.add(state); else chosen.delete(state);
    button.setAttribute("aria-pressed", on);
    shown = PAGE;
    draw();
  };
});
words.oninput = () => { shown = PAGE; draw(); };
more.onclick = () => { shown += PAGE; draw(); };
draw();
