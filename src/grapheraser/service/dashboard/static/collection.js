// The page of a collection: a graph that is drawn with the nodes that decide, and what to forget.

import { json } from "./api.js";
import { byId, make } from "./dom.js";
import { Forgetting, spelled } from "./forget.js";
import { follow } from "./live.js";
import { writeGone, writeGraph } from "./node_panel.js";
import { stayInStep } from "./refresh.js";

const page = /** @type {HTMLElement} */ (document.querySelector(".map-page"));
const named = page.dataset.named === "true";
/** @type {any} */
let shown = null; // the graph that is looked at, as the service describes it
let looking = 0;

/** Graphs, and nodes inside them. */
class Choice extends Forgetting {
  get body() {
    /** @param {string} graph */
    const spell = (graph) => spelled(graph, named);
    return {
      graphs: [...this.nodes].map(spell),
      graph_nodes: [...this.edges.values()].map(([graph, node]) => [spell(graph), Number(node)]),
    };
  }
}

const choice = new Choice(named, mark, look);
choice.nouns = ["graph", "node of a graph"];

/** @param {string} graph */
async function look(graph) {
  const mine = ++looking;
  try {
    const view = await json("/api/v1/graphs/show", { method: "POST", body: { graph: spelled(graph, named) } });
    if (mine !== looking) return;
    shown = view;
    draw(view);
    writeGraph(view, { look, forget: (chosen) => choice.addNodes([chosen]) });
  } catch (error) {
    if (mine !== looking) return;
    const { status, message } = /** @type {any} */ (error);
    shown = null;
    byId("stage").replaceChildren(make("p", { class: "empty" }, "There is no such graph."));
    byId("legend").hidden = true;
    writeGone(graph, status !== 400 ? message
      : "It is not in the collection: it never was, or it has been forgotten.", "Graph");
  }
}

/** @param {any} view */
function draw(view) {
  const size = `0 0 ${view.width} ${view.width}`;
  const markup = `<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="group" viewBox="${size}">${view.drawing}</svg>`;
  const made = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  made.setAttribute("aria-label", `Drawing of graph ${view.graph}`);
  byId("stage").replaceChildren(made);
  byId("legend").hidden = false;
  made.querySelectorAll("circle").forEach((circle, at) => {
    const node = String(view.nodes[at].node);
    const choose = () => choice.addEdge([view.graph, node]);
    circle.setAttribute("tabindex", "0");
    circle.setAttribute("role", "button");
    circle.addEventListener("click", choose);
    circle.addEventListener("keydown", (event) => {
      if (event.key === "Enter") choose();
    });
  });
  mark();
}

/** Ring what is to be forgotten of the graph that is looked at. */
function mark() {
  if (shown === null) return;
  const whole = choice.nodes.has(shown.graph);
  byId("stage").querySelectorAll("circle").forEach((/** @type {any} */ circle, /** @type {number} */ at) => {
    const node = shown.nodes[at];
    const key = JSON.stringify([shown.graph, String(node.node)]);
    circle.classList.toggle("chosen-node", whole || choice.edges.has(key));
  });
}

byId("search").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const text = byId("find").value.trim();
  if (text !== "") look(text);
});
byId("graphs").addEventListener("click", (/** @type {Event} */ event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest("button");
  if (button?.dataset.graph) look(button.dataset.graph);
});
stayInStep();
follow((step) => {
  if (step.state === "completed" && shown !== null) look(shown.graph);
});
