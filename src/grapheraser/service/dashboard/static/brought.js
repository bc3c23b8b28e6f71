// A receipt that is brought: dropped or chosen, and checked by the service.

import { call } from "./api.js";
import { at, make, moment, sentence } from "./make.js";
import { tellTimes } from "./shell.js";

const MOST = 10_000_000;
const zone = at("drop");
const result = at("checked");

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

/** @param {any} found @param {string} name */
function valid(found, name) {
  const lines = found.checked.map((/** @type {string} */ line) => make("li", {}, sentence(line)));
  show(
    "good",
    make("h3", {}, "✓ The receipt is valid"),
    make("p", {}, make("b", {}, sentence(found.about)), ` ${found.statement}: ${sentence(found.reason)}`),
    make("ul", { class: "ticks" }, ...lines),
    make("p", { class: "quiet" }, `${name}: receipt ${found.sequence}, completed `, moment(found.completed_at)),
  );
}

/** @param {any} found @param {string} name */
function forged(found, name) {
  const parts = [make("h3", {}, "✗ The receipt is not valid"), make("p", {}, sentence(found.wrong))];
  if (found.hint) parts.push(make("p", { class: "quiet" }, sentence(found.hint)));
  show("bad", ...parts, make("p", { class: "quiet" }, name));
}

/** @param {File} file */
async function verify(file) {
  show("working", `Checking ${file.name}…`);
  try {
    if (file.size > MOST) throw new Error("the file is too large for a receipt.");
    const answer = await call("/api/v1/receipts/verify", { method: "POST", body: file });
    const found = await answer.json();
    (found.valid ? valid : forged)(found, file.name);
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
at("receipt").addEventListener("change", (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const [file] = input.files ?? [];
  if (file) verify(file);
  input.value = "";
});
