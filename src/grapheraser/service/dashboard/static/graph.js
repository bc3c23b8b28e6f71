// The page of the graph: the drawing, the search, the node that is looked at, what to forget.

import { json } from "./api.js";
import { Canvas } from "./canvas.js";
import { isDark, onScheme, tokenColour } from "./colours.js";
import { aboutNode, byId, make, plural } from "./dom.js";
import { followDrawing, turned } from "./drawing.js";
import { Forgetting, Sides, spelled } from "./forget.js";
import { grouped, writeLegend } from "./legend.js";
import { writeGone, writeNode } from "./node_panel.js";
import { listen } from "./pointer.js";

const page = /** @type {HTMLElement} */ (document.querySelector(".map-page"));
const named = page.dataset.named === "true";
const still = matchMedia("(prefers-reduced-motion: reduce)");
const LATER = 700; // milliseconds that nodes take to their new places

/** @type {import("./drawing.js").Drawing | null} */
let drawing = null;
/** @type {{groups: import("./legend.js").Group[], of: Int16Array}} */
let colours = { groups: [], of: new Int16Array() };
/** @type {number | null} */
let alone = null; // the group that is looked at
let pointed = -1; // the row under the pointer
/** @type {any} */
let shown = null; // the node that is looked at, as the service describes it

const forgetting = new (page.dataset.task === "recommendation" ? Sides : Forgetting)(named, mark, look);
const canvas = opened();

/** @returns {Canvas | null} */
function opened() {
  try {
    return new Canvas(byId("map"), writeLabel);
  } catch {
    byId("waiting").hidden = true;
    say("This browser can't draw with WebGL. The search and the lists work without it.");
    return null;
  }
}

// -- the drawing ----------------------------------------------------------------------------------

/** @param {import("./drawing.js").Drawing} next */
function show(next) {
  const before = drawing;
  drawing = before === null ? next : { ...next, places: turned(next, before) };
  const { about } = drawing;
  byId("summary").textContent =
    `${plural(about.nodes, "node")}, ${plural(about.edges, "edge")}, version ${about.version}`;
  const drawn = drawing.names.length;
  byId("map").setAttribute("aria-label", `Drawing of ${plural(drawn, "node")}`);
  const sample = byId("sample");
  sample.hidden = drawn === about.nodes && drawing.edges.length / 2 === about.edges;
  sample.textContent = drawn < about.nodes
    ? `Drawn is a sample of ${drawn.toLocaleString("en")} nodes, with the edges between them. The ` +
      "search finds all."
    : `Of the edges, ${(drawing.edges.length / 2).toLocaleString("en")} are drawn, a sample.`;
  byId("waiting").hidden = true;
  if (canvas !== null) say(about.settled ? "" : "Laying out what is left afresh …");
  pointed = -1;
  colour();
  canvas?.setNodes(drawing.places, drawing.edges);
  if (before === null) {
    canvas?.fit();
    fromAddress();
    performance.mark("graph drawn");
  } else settle(before);
  forgetting.keep((node) => drawing?.rows.has(node) ?? true);
  if (shown === null || before === null) return;
  if (drawn === about.nodes && !drawing.rows.has(shown.node)) leave(shown.node);
  else look(shown.node, false);
}

/** Let nodes go to their new places. @param {import("./drawing.js").Drawing} before */
function settle(before) {
  if (canvas === null || drawing === null || still.matches) return;
  const { names, places, edges } = drawing;
  const from = new Float32Array(places);
  names.forEach((name, row) => {
    const old = before.rows.get(name);
    if (old === undefined) return;
    from[2 * row] = before.places[2 * old];
    from[2 * row + 1] = before.places[2 * old + 1];
  });
  const begun = performance.now();
  const step = () => {
    if (drawing?.places !== places) return;
    const part = Math.min(1, (performance.now() - begun) / LATER);
    const eased = 1 - (1 - part) ** 3;
    canvas.setNodes(part === 1 ? places : from.map((x, i) => x + (places[i] - x) * eased), edges);
    if (part < 1) requestAnimationFrame(step);
  };
  step();
}

function colour() {
  if (drawing === null) return;
  const by = byId("colour").value;
  colours = grouped(drawing, by);
  if (alone !== null && !colours.groups[alone]?.count) alone = null;
  writeLegend(colours.groups, by, alone, (group) => {
    alone = group;
    colour();
  });
  paint();
}

/** Hand the colours to the canvas; what is not looked at steps back. */
function paint() {
  if (canvas === null) return;
  const made = new Uint8Array(4 * colours.of.length);
  const back = shown !== null ? 90 : 215;
  for (let row = 0; row < colours.of.length; row++) {
    const group = colours.of[row];
    made.set(colours.groups[group].colour, 4 * row);
    made[4 * row + 3] = alone === null || alone === group ? back : 22;
  }
  canvas.paper = tokenColour("--raised");
  const ink = isDark() ? 1 : 0.1;
  const many = Math.max(1, (drawing?.edges.length ?? 0) / 2);
  const strength = Math.min(0.3, Math.max(0.035, 900 / many)) * (shown === null ? 1 : 0.5);
  canvas.edgeColour = [ink, ink, ink, strength];
  canvas.setColours(made);
  mark();
}

/** Mark the node that is looked at with its neighbours, what is to be forgotten, what is pointed at. */
function mark() {
  if (canvas === null || drawing === null) return;
  const { rows } = drawing;
  /** @param {string[]} names */
  const there = (names) => names.map((name) => rows.get(name)).filter((row) => row !== undefined);
  const ink = [...tokenColour("--ink"), 1];
  const lit = [...tokenColour("--lit"), 1];
  /** @type {import("./canvas.js").Mark[]} */
  const marks = [];
  const [centre] = shown === null ? [] : there([shown.node]);
  if (centre !== undefined) {
    const near = there(shown.neighbours.map((/** @type {any} */ line) => line.node));
    marks.push({ kind: "line", rows: near.flatMap((row) => [centre, row]), colour: [...ink.slice(0, 3), 0.7] });
    for (const row of near) marks.push({ kind: "disc", rows: [row], colour: solid(row), wider: 1 });
    marks.push({ kind: "disc", rows: [centre], colour: solid(centre), wider: 3 });
    marks.push({ kind: "ring", rows: [centre], colour: ink, wider: 6 });
  }
  const ends = [...forgetting.edges.values()].map(there).filter((pair) => pair.length === 2);
  const chosen = there([...forgetting.nodes]);
  marks.push({ kind: "line", rows: ends.flat(), colour: lit, wider: 3 });
  marks.push({ kind: "disc", rows: chosen, colour: lit, wider: 2 });
  marks.push({ kind: "ring", rows: chosen, colour: lit, wider: 6 });
  if (pointed >= 0) marks.push({ kind: "ring", rows: [pointed], colour: ink, wider: 4 });
  canvas.marks = marks;
  canvas.redraw();
}

/** The colour of a node, as it is. @param {number} row */
const solid = (row) => [...colours.groups[colours.of[row]].colour.map((value) => value / 255), 1];

/** Keep the name beside the node that is looked at. @param {Canvas} view */
function writeLabel(view) {
  const row = shown === null ? undefined : drawing?.rows.get(shown.node);
  const label = byId("label");
  label.hidden = row === undefined;
  if (row === undefined) return;
  const [x, y] = view.pixel(row);
  label.textContent = shown.node;
  label.style.transform = `translate(${x + view.radius + 10}px, ${y - 10}px)`;
}

/** @param {string} words below the drawing's corner; none: nothing is said */
function say(words) {
  byId("state").textContent = words;
}

// -- hands ----------------------------------------------------------------------------------------

/** @param {number} row */
function point(row) {
  if (row === pointed) return;
  pointed = row;
  const tip = byId("tip");
  tip.hidden = row < 0;
  byId("map").style.cursor = row < 0 ? "" : "pointer";
  if (row >= 0 && drawing !== null && canvas !== null) {
    const said = aboutNode({
      predicted: drawing.about.classes[drawing.classes[row]] ?? null, shard: drawing.shards[row],
    });
    tip.replaceChildren(make("b", {}, drawing.names[row]), ` ${said}`);
    const [x, y] = canvas.pixel(row);
    const left = x > canvas.width / 2;
    tip.style.left = left ? "auto" : `${x + 14}px`;
    tip.style.right = left ? `${canvas.width - x + 14}px` : "auto";
    tip.style.top = `${Math.max(4, y - 34)}px`;
  }
  mark();
}

if (canvas !== null) listen(canvas, {
  point,
  click: (row, more) => {
    const node = row < 0 ? null : drawing?.names[row] ?? null;
    if (node === null) unlook();
    else if (more) forgetting.addNodes([node], true);
    else look(node, false);
  },
  select: (rows) => forgetting.addNodes(rows.map((row) => drawing?.names[row] ?? "")),
  drawsRectangle: () => document.getElementById("lasso")?.getAttribute("aria-pressed") === "true",
  draw: (rectangle) => {
    const place = byId("rectangle");
    place.hidden = rectangle === null;
    if (rectangle === null) return;
    const [x0, y0, x1, y1] = rectangle;
    place.style.left = `${Math.min(x0, x1)}px`;
    place.style.top = `${Math.min(y0, y1)}px`;
    place.style.width = `${Math.abs(x1 - x0)}px`;
    place.style.height = `${Math.abs(y1 - y0)}px`;
  },
});

byId("closer").addEventListener("click", () => canvas?.zoomBy(1.5));
byId("farther").addEventListener("click", () => canvas?.zoomBy(1 / 1.5));
byId("fit").addEventListener("click", () => canvas?.fit());
byId("colour").addEventListener("change", () => {
  alone = null;
  colour();
});
byId("edges").addEventListener("change", () => {
  if (canvas === null) return;
  canvas.showsEdges = byId("edges").checked;
  canvas.redraw();
});
document.getElementById("lasso")?.addEventListener("click", (event) => {
  const button = /** @type {HTMLElement} */ (event.currentTarget);
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
});
onScheme(colour);

// -- nodes ----------------------------------------------------------------------------------------

let looking = 0;

/**
 * Look at a node.
 * @param {string} node @param {boolean} [goes] whether the drawing moves there
 */
async function look(node, goes = true) {
  const mine = ++looking;
  try {
    const view = await json("/api/v1/nodes/show", {
      method: "POST", body: { node: spelled(node, named) },
    });
    if (mine !== looking) return;
    shown = view;
    writeNode(view, {
      look,
      forget: (chosen) => forgetting.addNodes([chosen]),
      forgetEdge: (edge) => forgetting.addEdge(edge),
    });
    const row = drawing?.rows.get(view.node);
    if (goes && row !== undefined) canvas?.goTo(row);
  } catch (error) {
    if (mine !== looking) return;
    const { status, message } = /** @type {any} */ (error);
    if (status === 400 && shown?.node === node) return leave(node);
    shown = null;
    writeGone(node, status !== 400 ? message
      : "It is not in the graph: it never was, or it has been forgotten.");
  }
  paint();
}

/** Say that the node that was looked at is there no more. @param {string} node */
function leave(node) {
  looking++;
  shown = null;
  writeGone(node,
    "It has been forgotten: it is not in the graph any more, and its prediction is gone.");
  paint();
}

function unlook() {
  looking++;
  shown = null;
  byId("node").replaceChildren(make("div", { class: "empty" },
    make("p", {}, "Look for a node, or click one in the drawing.")));
  paint();
}

// -- search ---------------------------------------------------------------------------------------

let searching = 0;
/** @type {number | undefined} */
let typing;

/** @param {boolean} opens the first that is found */
async function search(opens) {
  const mine = ++searching;
  const text = byId("find").value.trim();
  const list = byId("found");
  list.hidden = true;
  if (text === "") return;
  try {
    const found = await json("/api/v1/nodes/find", { method: "POST", body: { text, limit: 8 } });
    if (mine !== searching) return;
    const { nodes } = found;
    byId("found-count").textContent = nodes.length
      ? `${plural(nodes.length, "node")} found${found.more ? ", and there are more" : ""}` : "No node found";
    if (opens && nodes.length) return choose(nodes[0].node);
    list.hidden = false;
    list.replaceChildren(...(nodes.length ? nodes.map((/** @type {any} */ line) => make("li", {},
      make("button", { type: "button", class: "plain", click: () => choose(line.node) },
        make("b", {}, line.node), make("span", { class: "quiet" }, aboutNode(line)))))
      : [make("li", { class: "quiet" }, `No node ${named ? "of that name" : "with that id"}.`)]));
  } catch (error) {
    list.hidden = false;
    list.replaceChildren(make("li", {}, /** @type {any} */ (error).message));
  }
}

/** @param {string} node */
async function choose(node) {
  byId("found").hidden = true;
  byId("find").value = node;
  await look(node);
  document.getElementById("node-title")?.focus({ preventScroll: true });
}

byId("search").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  clearTimeout(typing);
  search(true);
});
byId("find").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => search(false), 180);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("found").hidden = true;
});
document.addEventListener("click", (event) => {
  if (!byId("search").contains(event.target)) byId("found").hidden = true;
});

/** Look at the node that the address names behind `#node=`, which no server is told. */
function fromAddress() {
  const node = new URLSearchParams(location.hash.slice(1)).get("node");
  if (node) look(node);
}
addEventListener("hashchange", fromAddress);

followDrawing(show, (error) => {
  byId("waiting").hidden = true;
  say(error.message);
});
