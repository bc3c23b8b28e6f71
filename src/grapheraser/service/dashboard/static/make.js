// Elements from words: text is always text, never markup.

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElement}
 */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @returns {SVGElement}
 */
export function draw(name, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** @param {string} id @returns {HTMLElement} */
export const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {number} count @param {string} noun */
export const plural = (count, noun) =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** @param {string} text */
export const sentence = (text) =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

/** @param {string} stamp ISO 8601 */
export function moment(stamp) {
  const words = stamp.replace("T", " ").slice(0, 16);
  return make("time", { datetime: stamp, title: `${words} UTC` }, `${words} UTC`);
}
