// The page of the shards: sorted as one likes, and made anew when a version is published.

import { json } from "./api.js";
import { follow } from "./live.js";
import { tellTimes } from "./shell.js";

const COLUMNS = ["shard", "nodes", "edges", "f1", "importance", "version", "seconds"];
/** How the table is sorted: a column, and whether the largest comes first. */
let order = { column: "shard", down: false };

/** @returns {HTMLElement} */
const whole = () => /** @type {HTMLElement} */ (document.getElementById("shards"));

/**
 * @param {HTMLTableRowElement} row
 * @param {number} index
 */
function valueOf(row, index) {
  const text = /** @type {HTMLElement} */ (row.cells[index]).dataset.value ?? "";
  return text === "" ? -Infinity : Number(text);
}

/** Put the rows into the order that was asked for, and say so in the head. */
function sort() {
  const table = whole().querySelector("table.shards");
  if (!(table instanceof HTMLTableElement)) return;
  const index = COLUMNS.indexOf(order.column);
  const body = table.tBodies[0];
  const sign = order.down ? -1 : 1;
  const rows = [...body.rows].sort(
    (a, b) => sign * (valueOf(a, index) - valueOf(b, index)) || valueOf(a, 0) - valueOf(b, 0),
  );
  body.append(...rows);
  for (const button of table.querySelectorAll("button.sort")) {
    const here = /** @type {HTMLElement} */ (button).dataset.column === order.column;
    const direction = here ? (order.down ? "descending" : "ascending") : "none";
    button.closest("th")?.setAttribute("aria-sort", direction);
  }
}

document.addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest("button.sort");
  if (!(button instanceof HTMLElement)) return;
  const column = button.dataset.column ?? "shard";
  // Figures are looked at from the largest on, numbers of shards from the first.
  const down = order.column === column ? !order.down : column !== "shard";
  order = { column, down };
  sort();
  const status = document.getElementById("sorted");
  const words = down ? "the largest first" : "the smallest first";
  if (status) status.textContent = `Sorted by ${button.textContent}, ${words}.`;
});

/** Take the page anew from the service, and keep what the reader has chosen. */
async function renew() {
  const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = made.getElementById("shards");
  if (fresh === null) return;
  const held = document.activeElement?.closest("button.sort");
  const column = held instanceof HTMLElement ? held.dataset.column : undefined;
  whole().replaceWith(fresh);
  sort();
  tellTimes(fresh);
  if (column) /** @type {HTMLElement} */ (
    fresh.querySelector(`button[data-column="${column}"]`)
  )?.focus();
}

/** Scores take a moment: ask for them, then show the page with them. */
async function score() {
  if (whole().dataset.scored === "yes") return;
  await json("/api/v1/shards/scores");
  await renew();
}

let busy = Promise.resolve();
/** One thing after the other. @param {() => Promise<void>} work */
function next(work) {
  busy = busy.then(work).catch(() => {});
}

next(score);
/** The worker may be a step ahead of the pages. @param {number} version */
async function reach(version) {
  for (let tries = 0; tries < 20; tries += 1) {
    await renew();
    if (Number(whole().dataset.version) >= version) return;
    await new Promise((done) => setTimeout(done, 250));
  }
}

follow((step) => {
  if (step.state !== "published") return;
  next(() => reach(step.version ?? 0));
  next(score);
});
