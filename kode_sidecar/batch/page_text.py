"""The style and the script of `report.html`. What tasks say is shown as text, never as HTML."""

STYLE = """
:root{--ink:#1c2430;--soft:#667085;--line:#e3e7ee;--back:#f6f7f9;--card:#fff;--blue:#3b6fd4;
--completed:#2e9e6b;--incomplete:#e0a020;--failed:#d64545;--blocked:#8e4ec6;--cancelled:#8a93a3;
--cut:#e07b39;--running:#3b6fd4;--pending:#c3cad6}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#2c3442;--back:#12161d;
--card:#1a202a;--blue:#6f9bf0;--pending:#465062}}
*{box-sizing:border-box}
body{margin:0 auto;padding:28px 24px 60px;max-width:1240px;background:var(--back);color:var(--ink);
font:14px/1.5 system-ui,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
h1{font-size:22px;margin:0}h2{font-size:16px;margin:28px 0 10px}
header p{margin:2px 0;color:var(--soft)}header .early{color:var(--failed);font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:18px 0}
.tiles div,figure,table{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tiles div{padding:12px 14px;color:var(--soft)}
.tiles b{display:block;font-size:20px;color:var(--ink);font-variant-numeric:tabular-nums}
.bar-of-states{display:flex;height:12px;border-radius:6px;overflow:hidden;gap:2px}
.bar-of-states i{min-width:3px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:12px;
margin:18px 0}
figure{margin:0;padding:12px 14px 6px}figcaption{color:var(--soft);margin-bottom:4px}
svg{width:100%;display:block}svg text{font-size:16px;fill:var(--soft)}
.grid{stroke:var(--line)}.line{fill:none;stroke:var(--blue);stroke-width:2}
.area{fill:var(--blue);opacity:.14}.bar{fill:var(--blue)}
table{width:100%;border-collapse:separate;border-spacing:0;overflow:hidden}
th,td{padding:7px 12px;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
th{font-weight:600;color:var(--soft);white-space:nowrap}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--blue)}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td:first-child{font-weight:600;min-width:150px;overflow-wrap:anywhere}
td.why{color:var(--soft);min-width:280px;overflow-wrap:anywhere}
.records a{white-space:nowrap}.wide{overflow-x:auto}
a{color:var(--blue);text-decoration:none}a:hover{text-decoration:underline}
td a{margin-right:10px}
i.completed{background:var(--completed)}i.incomplete{background:var(--incomplete)}
i.failed{background:var(--failed)}i.blocked{background:var(--blocked)}
i.cancelled{background:var(--cancelled)}i.cut{background:var(--cut)}
i.running{background:var(--running)}i.pending{background:var(--pending)}
button i,td i{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:7px}
.state{white-space:nowrap}
.filters{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin-bottom:10px}
.filters input{flex:1 1 240px;padding:7px 11px;font:inherit;color:inherit;background:var(--card);
border:1px solid var(--line);border-radius:8px}
.filters button,#more{padding:5px 12px;font:inherit;color:inherit;background:var(--card);
border:1px solid var(--line);border-radius:999px;cursor:pointer}
.filters button[aria-pressed=true]{border-color:var(--blue);box-shadow:inset 0 0 0 1px var(--blue)}
#count{color:var(--soft)}#more{margin-top:12px}
@media print{.filters,#more{display:none}}
"""

SCRIPT = """
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
  const parts = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
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
"""
