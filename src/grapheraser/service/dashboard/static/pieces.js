// Small pieces of the pages about proofs: shapes, times, sentences.

import { make } from "./dom.js";

/**
 * A shape of a drawing.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @returns {SVGElement}
 */
export function draw(name, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** @param {string} text */
export const sentence = (text) =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

/** A time, which `tellTimes` keeps in relation to now. @param {string} stamp ISO 8601 */
export function moment(stamp) {
  const words = `${stamp.replace("T", " ").slice(0, 16)} UTC`;
  return make("time", { datetime: stamp, title: words }, words);
}
