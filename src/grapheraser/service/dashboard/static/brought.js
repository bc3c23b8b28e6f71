// A receipt that is brought: dropped or chosen, and checked by the service.

import { call } from "./api.js";
import { byId, make } from "./dom.js";
import { canonical } from "./merkle.js";
import { moment, sentence } from "./pieces.js";
import { tellTimes } from "./shell.js";

const MOST = 10_000_000;
/** @type {Record<string, [string, string]>} */
const TITLES = {
  valid: ["good", "✓ The receipt is valid"],
  signed: ["fair", "The receipt is signed, and in the log"],
  refused: ["bad", "✗ The receipt is not valid"],
};
const UNREADABLE = { verdict: "refused", wrong: "not a readable receipt, or a truncated one." };
const zone = byId("drop");
const result = byId("checked");

/**
 * @param {string} state
 * @param {(Node | string)[]} parts
 */
function show(state, ...parts) {
  result.hidden = false;
  result.dataset.state = state;
  result.replaceChildren(...parts);
  tellTimes(result);
}

/** @param {any} found */
function holding(found) {
  const lines = found.checked.map((/** @type {string} */ line) => make("li", {}, sentence(line)));
  const words = `Receipt ${found.sequence}: ${found.statement}. ${found.reason}`;
  const parts = [
    make("p", {}, make("b", {}, `✓ ${sentence(found.about)}`), " ", sentence(words)),
    make("ul", { class: "ticks" }, ...lines),
  ];
  if (found.unshown) parts.push(make("p", {}, make("b", {}, "? "), sentence(found.unshown)));
  return [...parts, make("p", { class: "quiet" }, "Completed ", moment(found.completed_at))];
}

/** @param {any} found */
function forged(found) {
  const parts = [make("p", {}, make("b", {}, `✗ ${sentence(found.wrong)}`))];
  if (found.hint) parts.push(make("p", { class: "quiet" }, sentence(found.hint)));
  return parts;
}

/**
 * The parts of a file: one as it was handed out, or all of a request's as they are downloaded; none
 * where it is no JSON.
 * @param {File} file
 * @returns {Promise<Blob[]>}
 */
async function partsOf(file) {
  try {
    const { parts } = JSON.parse(await file.text());
    if (Array.isArray(parts) && parts.length) return parts.map((part) => new Blob([canonical(part)]));
  } catch {
    return [];
  }
  return [file];
}

/** @param {File} file */
async function verify(file) {
  show("working", `Checking ${file.name}…`);
  try {
    if (file.size > MOST) throw new Error("the file is too large for a receipt.");
    const bodies = await partsOf(file);
    const found = bodies.length ? [] : [UNREADABLE];
    for (const body of bodies) {
      const answer = await call("/api/v1/receipts/verify", { method: "POST", body });
      found.push(await answer.json());
    }
    const verdicts = found.map((one) => one.verdict);
    const [state, words] = TITLES[["refused", "signed"].find((one) => verdicts.includes(one)) ?? "valid"];
    show(
      state,
      make("h3", {}, words),
      ...found.flatMap((one) => (one.verdict === "refused" ? forged(one) : holding(one))),
      make("p", { class: "quiet" }, file.name),
    );
  } catch (error) {
    show("bad", make("p", {}, sentence(String(error instanceof Error ? error.message : error))));
  }
}

for (const name of ["dragenter", "dragover"]) {
  zone.addEventListener(name, (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
}
zone.addEventListener("dragleave", () => zone.classList.remove("over"));
zone.addEventListener("drop", (event) => {
  event.preventDefault();
  zone.classList.remove("over");
  const [file] = event.dataTransfer?.files ?? [];
  if (file) verify(file);
});
byId("receipt").addEventListener("change", (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const [file] = input.files ?? [];
  if (file) verify(file);
  input.value = "";
});
