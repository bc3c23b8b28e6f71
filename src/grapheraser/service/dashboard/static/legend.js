// What the colours mean: a list of groups, each of which can be looked at alone.

import { amountColour, asText, groupColour, noColour } from "./colours.js";
import { byId, classWord, make, percent } from "./dom.js";

/**
 * @typedef {object} Group
 * @property {string} name
 * @property {import("./colours.js").Rgb} colour
 * @property {number} count of nodes
 * @property {string} [more] to say about it
 */

const DEGREES = [0, 1, 2, 4, 8, 16, 32, 64, Infinity]; // the most neighbours of each group
const SPREAD =
  "Nodes are assigned to shards by their ids alone, so a shard is spread over the whole graph and " +
  "its colours show no structure. Press one to see it alone.";
const ABOUT = {
  neighbours: "How many neighbours each node has; the more, the stronger. Press one to see it alone.",
  shard: "The shard that each node is in. Press one to see it alone.",
  class: "The class that is predicted for each node. Press one to see it alone.",
  importance:
    "A node has the colour of its shard: the larger the shard's mean share of all decisions, the " +
    "stronger.",
};

/**
 * The groups of a drawing, and the group of each node.
 * @param {import("./drawing.js").Drawing} drawing
 * @param {string} by shard, class, importance or neighbours
 * @returns {{groups: Group[], of: Int16Array}}
 */
export function grouped(drawing, by) {
  if (by === "neighbours") return byDegree(drawing);
  const { about, shards, classes } = drawing;
  const kind = by === "class" ? classes : shards;
  const known = by === "class" ? about.classes.length : about.sizes.length;
  const most = Math.max(1e-9, ...Object.values(about.importance));
  /** @type {Group[]} */
  const groups = [];
  for (let at = 0; at < known; at++) {
    const share = about.importance[at] ?? 0;
    groups.push({
      name: by === "class" ? classWord(about.classes[at]) : `shard ${at}`,
      colour: by === "importance" ? amountColour(share / most) : groupColour(at),
      count: 0,
      more: by === "importance" ? percent(share) : undefined,
    });
  }
  const none = by === "class" ? "not known yet" : "in no shard";
  groups.push({ name: none, colour: noColour(), count: 0 });
  const of = new Int16Array(kind.length);
  for (let node = 0; node < kind.length; node++) {
    of[node] = kind[node] < 0 ? known : kind[node];
    groups[of[node]].count++;
  }
  return { groups, of };
}

/**
 * The nodes of a drawing by their number of neighbours, among those that are drawn.
 * @param {import("./drawing.js").Drawing} drawing
 * @returns {{groups: Group[], of: Int16Array}}
 */
function byDegree({ names, edges }) {
  const degrees = new Uint32Array(names.length);
  for (const end of edges) degrees[end]++;
  const groups = DEGREES.map((most, at) => {
    const least = at ? DEGREES[at - 1] + 1 : 0;
    const span = most === Infinity ? `${least} and more` : least === most ? `${most}` : `${least} to ${most}`;
    return { name: span, colour: amountColour(at / (DEGREES.length - 1)), count: 0 };
  });
  const of = new Int16Array(names.length);
  degrees.forEach((degree, node) => {
    of[node] = DEGREES.findIndex((most) => degree <= most);
    groups[of[node]].count++;
  });
  return { groups, of };
}

/**
 * @param {Group[]} groups
 * @param {string} by
 * @param {number | null} alone the group that is looked at
 * @param {(group: number | null) => void} choose
 */
export function writeLegend(groups, by, alone, choose) {
  const spread = document.querySelector(".map-page[data-spread=true]") !== null;
  byId("legend-about").textContent =
    by === "shard" && spread ? SPREAD : ABOUT[/** @type {keyof typeof ABOUT} */ (by)];
  const order = groups.map((_, at) => at).filter((at) => groups[at].count > 0);
  if (by === "importance") {
    order.sort((a, b) => parseFloat(groups[b].more ?? "-1") - parseFloat(groups[a].more ?? "-1"));
  }
  const focused = document.activeElement?.closest("#legend li")?.getAttribute("data-group");
  byId("legend").replaceChildren(...order.map((at) => {
    const group = groups[at];
    const chip = make("span", { class: "chip", "aria-hidden": "true" });
    chip.style.background = asText(group.colour);
    const said = group.more === undefined ? "" : `, ${group.more}`;
    const button = make(
      "button",
      { class: "plain", "aria-pressed": String(alone === at),
        click: () => choose(alone === at ? null : at) },
      chip, make("span", { class: "name" }, `${group.name}${said}`),
      make("span", { class: "quiet" }, group.count.toLocaleString("en")),
    );
    const line = make("li", { "data-group": String(at) }, button);
    if (focused === String(at)) queueMicrotask(() => button.focus());
    return line;
  }));
}
