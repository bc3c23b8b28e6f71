// The drawing of the served version, and how it follows what is published.

import { call } from "./api.js";
import { follow } from "./live.js";
import { readTensors } from "./safetensors.js";

/**
 * @typedef {object} Drawing
 * @property {string[]} names ids or names of the nodes
 * @property {Map<string, number>} rows the row of every node
 * @property {Float32Array} places
 * @property {Int16Array} shards -1: none
 * @property {Int16Array} classes -1: not known
 * @property {Uint32Array} edges
 * @property {{version: number, settled: boolean, task: string, nodes: number, edges: number,
 *             classes: string[], sizes: number[], importance: Record<string, number>}} about
 */

const PATIENCE = 10; // seconds that the service may wait before it answers
const NEWS = ["published", "erased", "completed"];

/** @param {ArrayBuffer} content @returns {Drawing} */
function read(content) {
  const { arrays, about } = readTensors(content);
  /** @type {string[]} */
  const names = arrays.ids
    ? Array.from(arrays.ids, String)
    : JSON.parse(new TextDecoder().decode(arrays.names));
  const { places, shards, classes, edges } = arrays;
  const rows = new Map(names.map((name, row) => [name, row]));
  return { names, rows, places, shards, classes, edges, about: JSON.parse(about.drawing) };
}

/** Asks for drawings, one at a time, until there is nothing new to come. */
class Source {
  /** @param {(drawing: Drawing) => void} show */
  constructor(show) {
    this.show = show;
    this.tag = "";
    this.version = -1; // of the last one shown
    this.wanted = 0; // the version that has been announced
    this.settled = false;
    this.busy = false;
  }

  async ask() {
    if (this.busy) return;
    this.busy = true;
    try {
      do await this.once();
      while (!this.settled || this.version < this.wanted);
    } finally {
      this.busy = false;
    }
  }

  async once() {
    const due = !this.settled || this.version < this.wanted;
    const headers = { Accept: "application/octet-stream", "If-None-Match": this.tag };
    const answer = await call(`/api/v1/graph/layout?wait=${due ? PATIENCE : 0}`, { headers })
      .catch((error) => {
        if (error.status !== 304) throw error;
        return null; // nothing is new
      });
    if (answer?.status !== 200) return;
    const drawing = read(await answer.arrayBuffer());
    this.tag = answer.headers.get("ETag") ?? "";
    this.version = drawing.about.version;
    this.settled = drawing.about.settled;
    this.show(drawing);
  }
}

/**
 * Show the drawing, and every one that follows it.
 * @param {(drawing: Drawing) => void} show
 * @param {(error: any) => void} failed
 */
export function followDrawing(show, failed) {
  const source = new Source(show);
  const ask = () => source.ask().catch(failed);
  follow((step) => {
    if (!NEWS.includes(step.state) || step.version === null) return;
    source.wanted = Math.max(source.wanted, step.version);
    ask();
  });
  return ask();
}

/**
 * New places, turned so that they lie as close to the old ones as a rigid turn allows. What is near
 * what stays as it is; the eye finds its way back.
 * @param {Drawing} drawing @param {Drawing} before
 * @returns {Float32Array}
 */
export function turned(drawing, before) {
  let [xx, xy, yx, yy] = [0, 0, 0, 0];
  drawing.names.forEach((name, row) => {
    const old = before.rows.get(name);
    if (old === undefined) return;
    const [x, y] = [drawing.places[2 * row], drawing.places[2 * row + 1]];
    const [u, v] = [before.places[2 * old], before.places[2 * old + 1]];
    xx += x * u;
    xy += x * v;
    yx += y * u;
    yy += y * v;
  });
  const mirrored = Math.hypot(xx - yy, xy + yx) > Math.hypot(xx + yy, xy - yx);
  const sign = mirrored ? -1 : 1;
  const angle = Math.atan2(xy - sign * yx, xx + sign * yy);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const made = new Float32Array(drawing.places.length);
  for (let i = 0; i < made.length; i += 2) {
    const [x, y] = [drawing.places[i], sign * drawing.places[i + 1]];
    made[i] = cos * x - sin * y;
    made[i + 1] = sin * x + cos * y;
  }
  return made;
}
