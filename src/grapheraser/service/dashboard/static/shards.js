// The page of the shards: sorted as one likes, and made anew when a version is published.

import { json } from "./api.js";
import { refresh, stayInStep } from "./refresh.js";

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

/** Scores take a moment: ask for them, then show the page with them. */
async function score() {
  if (whole().querySelector("[data-scored=no]") === null) return;
  await json("/api/v1/shards/scores");
  await refresh();
}

document.addEventListener("refreshed", () => {
  sort();
  score().catch(() => {});
});
score().catch(() => {});
stayInStep((step) => step.state === "published");
