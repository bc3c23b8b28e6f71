// Elements from scripts: text is text, whatever it holds.

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] functions become listeners; false and null are left out
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * An element of the page that has to be there.
 * @param {string} id
 * @returns {any}
 */
export const byId = (id) => {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page lacks #${id}`);
  return found;
};

/** @param {number} count @param {string} noun */
export const plural = (count, noun) =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

/** @param {number} share */
export const percent = (share) => {
  const value = share * 100;
  return value > 0 && value < 1 ? "< 1 %" : `${Math.round(value)} %`;
};

/** What a class is called; one that only has a number is a class of that number. @param {string} name */
export const classWord = (name) => (/^\d+$/.test(name) ? `class ${name}` : name);

/** A shard in words. @param {number | null} shard */
export const shardWord = (shard) => (shard === null || shard < 0 ? "no shard" : `shard ${shard}`);

/** Class and shard of a node in a list. @param {any} line */
export const aboutNode = (line) =>
  [line.predicted === null ? "" : classWord(line.predicted), shardWord(line.shard)]
    .filter(Boolean).join(", ");
