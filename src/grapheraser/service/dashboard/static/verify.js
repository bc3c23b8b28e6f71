// Verification as a job: begin it, see how far it is, and what it found.

import { Problem, json } from "./api.js";
import { byId, make, plural } from "./dom.js";
import { follow } from "./live.js";
import { moment, sentence } from "./pieces.js";
import { tellTimes } from "./shell.js";

const section = byId("verify");
const result = byId("job");
const buttons = [...section.querySelectorAll("button")];
const LOOK = 300; // milliseconds between two looks

/** @param {boolean} running */
function allow(running) {
  for (const button of buttons) button.disabled = running;
}

/** @param {any} job */
function progress(job) {
  const bar = /** @type {HTMLProgressElement} */ (make("progress", { "aria-label": "Verification" }));
  if (job.total) {
    bar.max = job.total;
    bar.value = job.done;
  }
  const words = job.total ? `${sentence(job.step).slice(0, -1)}: ${job.done} of ${job.total}` : `${sentence(job.step).slice(0, -1)}…`;
  result.dataset.state = "working";
  result.replaceChildren(make("p", { role: "status" }, words), bar);
}

const HEADINGS = { good: "✓ Verified", bad: "✗ Not as it should be", fair: "Not verified" };

/** @param {any} job */
function done(job) {
  const found = job.result;
  const parts = [
    make("h3", {}),
    make("p", {}, `${plural(found.tensors, "tensor")}, ${plural(found.values, "value")} and ${plural(found.receipts, "receipt")} compared in ${found.seconds.toFixed(1)} s.`),
    make("p", {}, `Signatures: ${found.signatures.words}.`),
  ];
  const lines = [
    ...found.differences.slice(0, 20).map((/** @type {string} */ line) => `differs: ${line}`),
    ...found.signatures.wrong.map((/** @type {string} */ line) => `signature: ${line}`),
    ...found.strays.map((/** @type {string} */ name) => `stray: ${name} is no file of the run and may hold forgotten data`),
    ...(found.search?.residues ?? []).map((/** @type {any} */ one) => `found: ${one.kind} in ${one.file}: ${one.what}`),
  ];
  if (found.search) {
    const words = found.search.clean ? "nothing left of what was forgotten" : plural(found.search.residues.length, "residue");
    parts.push(make("p", {}, `${plural(found.search.files, "file")} searched, ${found.search.size.toLocaleString("en")} bytes: ${words}.`));
  } else if (!found.strays.length) parts.push(make("p", {}, "No stray files."));
  const state = found.passed ? "good" : lines.length ? "bad" : "fair";
  parts[0].textContent = `${HEADINGS[state]}: ${found.verdict}`;
  if (found.elsewhere) parts.push(make("p", {}, `Files and receipts fit; bits depend on what trains: ${found.elsewhere}.`));
  if (lines.length) parts.push(make("ul", {}, ...lines.map((line) => make("li", {}, line))));
  const notes = [...found.notes, ...(found.search?.notes ?? [])];
  if (notes.length) {
    parts.push(make("details", {}, make("summary", {}, plural(notes.length, "note")), make("ul", { class: "quiet" }, ...notes.map((note) => make("li", {}, sentence(note))))));
  }
  parts.push(make("p", { class: "quiet" }, `Version ${job.version}, `, moment(job.finished)));
  result.dataset.state = state;
  result.replaceChildren(make("div", { role: "status" }, ...parts));
  tellTimes(result);
}

/** @param {string} words @param {string} [hint] */
function failed(words, hint = "") {
  result.dataset.state = "bad";
  result.replaceChildren(make("p", { role: "status" }, `${sentence(words)} ${hint && sentence(hint)}`));
}

/** @param {any} job */
function show(job) {
  result.hidden = false;
  allow(job.state === "running");
  if (job.state === "running") progress(job);
  else if (job.state === "done") done(job);
  else failed(job.reason);
}

/** Look at a job until it has ended. @param {any} job */
async function watch(job) {
  for (;;) {
    show(job);
    if (job.state !== "running") return;
    await new Promise((wait) => setTimeout(wait, LOOK));
    job = await json(`/api/v1/verifications/${job.id}`);
  }
}

/** @param {boolean} deep */
async function begin(deep) {
  allow(true);
  try {
    await watch(await json("/api/v1/verifications", { method: "POST", body: { deep } }));
  } catch (error) {
    allow(false);
    result.hidden = false;
    failed(String(error instanceof Error ? error.message : error), error instanceof Problem ? error.hint : "");
  }
}

for (const button of buttons) {
  button.addEventListener("click", () => begin(button.dataset.deep === "yes"));
}
const known = section.dataset.job;
if (known) watch(JSON.parse(known)).catch(() => allow(false));
follow((step) => {
  if (step.state === "published" && step.version !== null) byId("version").textContent = `${step.version}`;
});
