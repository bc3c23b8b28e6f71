// One node: what it is, what is predicted, who decided, and its neighbours.

import { aboutNode, byId, classWord, make, percent, plural } from "./dom.js";

const SHOWN = 12;
// What the members of the ensemble decide by. All others are shards.
const MEMBERS = {
  words: "the node's own features, such as the words of a paper: which classes have them",
  labels: "the classes of its neighbours, known or guessed",
  edges: "the classes of its neighbours, by how often such classes are adjacent",
  pattern: "the mix of classes one and two steps away",
  features: "the features of its neighbourhood, two steps far",
};

/**
 * @typedef {object} Acts
 * @property {(node: string) => void} look at another node
 * @property {(node: string) => void} forget the node
 * @property {(edge: [string, string]) => void} forgetEdge
 */

/**
 * @param {any} view what `/api/v1/nodes/show` answers
 * @param {Acts} acts
 */
export function writeNode(view, acts) {
  const facts = [
    ["Role", view.role],
    ["Shard", view.shard === null ? "none" : String(view.shard)],
    ...(view.label === null ? [] : [["Label", classWord(view.label)]]),
    ["Neighbours", view.degree.toLocaleString("en")],
  ];
  byId("node").replaceChildren(
    make("div", { class: "node-head" },
      make("h2", { id: "node-title", tabindex: "-1" }, "Node ", make("span", {}, view.node)),
      make("button", { class: "plain", click: () => acts.forget(view.node) }, "Select to forget")),
    make("dl", { class: "node-facts" }, ...facts.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    ...(view.posterior === null ? [] : answers(view)),
    ...(view.members.length ? deciders(view) : []),
    ...neighbours(view, acts),
  );
}

/**
 * A graph of a collection.
 * @param {any} view what `/api/v1/graphs/show` answers
 * @param {{look: (graph: string) => void, forget: (graph: string) => void}} acts
 */
export function writeGraph(view, acts) {
  const facts = [
    ["Role", view.role],
    ["Shard", view.shard === null ? "none" : String(view.shard)],
    ...(view.label === null ? [] : [["Label", classWord(view.label)]]),
    ["Nodes", view.nodes.length.toLocaleString("en")],
    ["Edges", view.edges.length.toLocaleString("en")],
  ];
  byId("node").replaceChildren(
    make("div", { class: "node-head" },
      make("h2", { id: "node-title", tabindex: "-1" }, "Graph ", make("span", {}, view.graph)),
      make("button", { class: "plain", click: () => acts.forget(view.graph) }, "Select to forget")),
    make("dl", { class: "node-facts" }, ...facts.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    ...answers(view),
    ...(view.members.length ? [make("h3", {}, "Who decided"),
      make("ul", { class: "bars", id: "members", "aria-label": "Members of the ensemble" },
        ...view.members.slice(0, 8).map((/** @type {any} */ m) =>
          bar(m.member, m.weight, `${percent(m.weight)}, says ${classWord(m.predicted)}`)))] : []),
    ...(view.alike.length ? [make("h3", {}, "Most like it"),
      make("ul", { class: "near", id: "near" }, ...view.alike.map((/** @type {any} */ one) => make("li", {},
        make("button", { class: "link", click: () => acts.look(one.graph) }, one.graph),
        make("span", { class: "quiet" }, `${classWord(one.label)}, ${percent(one.similarity)} alike`))))] : []),
  );
}

/** @param {string} node @param {string} words @param {string} [noun] */
export function writeGone(node, words, noun = "Node") {
  byId("node").replaceChildren(
    make("h2", { id: "node-title", tabindex: "-1" }, `${noun} `, make("span", {}, node)),
    make("p", { class: "alert note", id: "gone" }, words),
  );
}

/**
 * A prediction; of several labels how likely each is, or numbers.
 * @param {any} view
 */
function answers(view) {
  return view.members.length ? prediction(view) : [
    make("h3", {}, "Prediction"),
    make("ul", { class: "bars", id: "prediction" }, ...view.posterior.map((/** @type {any} */ one) =>
      make("li", {}, make("span", { class: "name" }, one.name), make("span", {}, one.probability.toPrecision(3))))),
  ];
}

/** @param {any} view */
function prediction(view) {
  const [first] = view.posterior;
  const likely = view.posterior.filter((/** @type {any} */ share) => share.probability >= 0.01);
  const shown = likely.slice(0, 5);
  const left = view.posterior.length - shown.length;
  const rest = left === 1 ? "1 other class is" : `${left} other classes are`;
  return [
    make("h3", {}, "Prediction"),
    make("p", { id: "prediction" }, make("b", {}, classWord(first.name)),
      `, ${percent(first.probability)}`,
      view.label === null ? null
        : make("span", { class: "quiet" },
            view.label === first.name ? " – as its label says" : " – its label says otherwise")),
    make("ul", { class: "bars", "aria-label": "Posterior" }, ...shown.map((/** @type {any} */ share) =>
      bar(classWord(share.name), share.probability, percent(share.probability)))),
    ...(left > 0 ? [make("p", { class: "quiet" }, `${rest} less likely.`)] : []),
  ];
}

/** @param {any} view */
function deciders(view) {
  const shown = view.members.slice(0, 8);
  const left = view.members.slice(8);
  const rest = left.reduce((/** @type {number} */ sum, /** @type {any} */ m) => sum + m.weight, 0);
  const told = Object.entries(MEMBERS)
    .filter(([name]) => view.members.some((/** @type {any} */ m) => m.member === name));
  return [
    make("h3", {}, "Who decided"),
    make("ul", { class: "bars", id: "members", "aria-label": "Members of the ensemble" },
      ...shown.map((/** @type {any} */ m) =>
        bar(m.member, m.weight, `${percent(m.weight)}, says ${classWord(m.predicted)}`))),
    make("p", { class: "quiet" },
      `${left.length ? `${plural(left.length, "other")} with ${percent(rest)} together. ` : ""}` +
      `${view.why.charAt(0).toUpperCase()}${view.why.slice(1)}.`),
    ...(told.length ? [make("details", { class: "members-about", open: true },
      make("summary", {}, "What they decide by"),
      make("dl", {}, ...told.flatMap(([name, words]) =>
        [make("dt", {}, name), make("dd", {}, words)]),
      make("dt", {}, "shard"), make("dd", {}, "a model that was trained on the nodes of one shard")))] : []),
  ];
}

/** @param {string} name @param {number} share @param {string} said */
function bar(name, share, said) {
  const drawn = make("span", { class: "bar-fill", "aria-hidden": "true" });
  drawn.style.width = `${Math.max(1, 100 * share)}%`;
  return make("li", {}, drawn, make("span", { class: "name" }, name), make("span", {}, said));
}

/** @param {any} view @param {Acts} acts */
function neighbours(view, acts) {
  if (!view.degree) return [make("p", { class: "quiet" }, "It has no neighbours.")];
  const list = make("ul", { class: "near", id: "near" });
  /** @param {any[]} lines */
  const add = (lines) => list.append(...lines.map((line) => make("li", {},
    make("button", { class: "link", click: () => acts.look(line.node) }, line.node),
    make("span", { class: "quiet" }, aboutNode(line)),
    make("button", {
      class: "plain small", "aria-label": `Select the edge to ${line.node}`,
      click: () => acts.forgetEdge([view.node, line.node]),
    }, "edge"))));
  add(view.neighbours.slice(0, SHOWN));
  const hidden = view.neighbours.slice(SHOWN);
  const unsent = view.degree - view.neighbours.length;
  const more = make("button", { class: "plain small", click: () => {
    add(hidden);
    more.remove();
  } }, `Show ${hidden.length} more`);
  return [
    make("h3", {}, "Neighbours"), list,
    ...(hidden.length ? [more] : []),
    ...(unsent > 0 ? [make("p", { class: "quiet" }, `and ${unsent.toLocaleString("en")} that are not listed`)] : []),
  ];
}
