// A drawing of the log's Merkle tree, as it is worked out.

import { draw } from "./pieces.js";

const MOST = 48;

/** The largest power of two below a size. @param {number} size */
const split = (size) => 2 ** Math.ceil(Math.log2(size) - 1);

/**
 * @typedef {{x: number, y: number, first: number, last: number, height: number, dot: SVGElement,
 *            left: Branch | null, right: Branch | null, lines: SVGElement[]}} Branch
 */

export class Tree {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure;
    this.svg = /** @type {SVGElement} */ (figure.querySelector("svg"));
    this.size = 0;
    /** @type {Branch | null} */
    this.top = null;
    /** @type {Map<number, "good" | "bad">} */
    this.leaves = new Map();
    /** @type {"good" | "bad" | ""} */
    this.root = "";
  }

  /** Make room for a log of this size. @param {number} size */
  shape(size) {
    this.figure.hidden = size < 2 || size > MOST;
    if (this.figure.hidden || size === this.size) return;
    this.size = size;
    const step = Math.max(11, Math.min(34, 420 / size));
    const levels = Math.ceil(Math.log2(size));
    const width = step * size;
    const height = 26 * levels + 22;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    /** @type {SVGElement[]} */
    const lines = [];
    /** @type {SVGElement[]} */
    const dots = [];
    /** @param {number} first @param {number} count @returns {Branch} */
    const grow = (first, count) => {
      const left = count > 1 ? grow(first, split(count)) : null;
      const right = count > 1 ? grow(first + split(count), count - split(count)) : null;
      const rise = count > 1 ? 1 + Math.max(left?.height ?? 0, right?.height ?? 0) : 0;
      const x = left && right ? (left.x + right.x) / 2 : step * (first + 0.5);
      const y = height - 11 - 26 * rise;
      /** @type {SVGElement[]} */
      const own = [];
      for (const child of [left, right]) {
        if (child) own.push(draw("line", { x1: x, y1: y, x2: child.x, y2: child.y }));
      }
      lines.push(...own);
      const dot = draw("circle", { cx: x, cy: y, r: count === size ? 8 : count > 1 ? 4.5 : 5.5 });
      dots.push(dot);
      return { x, y, first, last: first + count - 1, height: rise, dot, left, right, lines: own };
    };
    this.top = grow(0, size);
    this.svg.append(...lines, ...dots);
    this.paint();
  }

  /** @param {number} index @param {boolean} good */
  leaf(index, good) {
    this.leaves.set(index, good ? "good" : "bad");
    this.paint();
  }

  /** @param {boolean} good */
  crown(good) {
    this.root = good ? "good" : "bad";
    this.paint();
  }

  /** Light the way from a leaf to the root. @param {number} index */
  way(index) {
    this.svg.querySelectorAll(".way").forEach((part) => part.classList.remove("way"));
    for (let branch = this.top; branch; ) {
      branch.dot.classList.add("way");
      const next = branch.left && index <= branch.left.last ? branch.left : branch.right;
      branch.lines[next === branch.left ? 0 : 1]?.classList.add("way");
      branch = next;
    }
  }

  paint() {
    /** @param {Branch | null} branch @returns {string} */
    const tone = (branch) => {
      if (!branch) return "";
      const own = branch.left
        ? [tone(branch.left), tone(branch.right)]
        : [this.leaves.get(branch.first) ?? ""];
      let found = own.includes("bad") ? "bad" : own.every((one) => one === "good") ? "good" : "";
      if (branch === this.top && this.root) found = this.root;
      branch.dot.classList.toggle("good", found === "good");
      branch.dot.classList.toggle("bad", found === "bad");
      return found;
    };
    tone(this.top);
  }
}
