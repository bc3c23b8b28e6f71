// The log, checked by the browser: entries, chain, signatures, root, checkpoint, growth.

import { call, json } from "./api.js";
import { byId, make, plural } from "./dom.js";
import { follow } from "./live.js";
import {
  Growing, bytesOf, fromHex, hex, isConsistent, isIncluded, isSignedEnvelope, isSignedNote, keyId,
  leafHash, predicateOf, readCheckpoint, readKeys, same, sha256,
} from "./merkle.js";
import { moment } from "./pieces.js";
import { tellTimes } from "./shell.js";
import { Tree } from "./tree.js";

const PAGE = 200;
const SHOWN = 100;
const FEW = 40; // so few entries are checked slowly enough to be seen

/** @typedef {{sequence: number, digest: string, envelope: import("./merkle.js").Envelope}} Entry */

/** What was found so far; made anew by `Check again`. */
class Checking {
  constructor() {
    this.grown = new Growing();
    /** @type {Uint8Array[]} */
    this.leaves = [];
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Uint8Array[]} */
    this.keys = [];
    /** @type {string | null} */
    this.checkpoint = null;
    /** @type {any} */
    this.before = null;
    this.digest = "";
    /** Entries that are wrong, by what is wrong with them. */
    this.wrong = { hash: 0, chain: 0, signatures: 0 };
    this.unsigned = 0;
    this.unknown = 0;
    this.broken = false;
  }
}

const section = byId("log");
const body = /** @type {HTMLElement} */ (section.querySelector("tbody"));
const tree = new Tree(byId("tree"));
let now = new Checking();

/**
 * @param {string} check
 * @param {"working" | "good" | "bad" | "fair"} state
 * @param {string} words
 */
function tell(check, state, words) {
  const line = /** @type {HTMLElement} */ (section.querySelector(`[data-check="${check}"]`));
  line.dataset.state = state;
  /** @type {HTMLElement} */ (line.querySelector("span")).textContent = words;
  if (state === "bad") now.broken = true;
}

/** @param {"working" | "good" | "bad"} state @param {string} words */
function conclude(state, words) {
  const place = byId("verdict");
  place.dataset.state = state;
  place.textContent = words;
}

const NOUNS = { nodes: "node", edges: "edge", features: "feature row", labels: "label" };

/** What a receipt is about, in words. @param {any} said */
function about(said) {
  const counts = Object.entries(NOUNS)
    .filter(([kind]) => said.counts[kind])
    .map(([kind, noun]) => plural(said.counts[kind], noun));
  const verb = said.action === "unlearn" ? "forgot" : said.action;
  return `${verb} ${counts.join(", ") || "everything anew"}`;
}

/**
 * Check one entry by itself and against the one before it, and show it.
 * @param {Entry} entry
 */
async function checkEntry(entry) {
  const number = now.entries.length + 1;
  const bytes = bytesOf(entry.envelope);
  const digest = hex(await sha256(bytes));
  const leaf = await leafHash(bytes);
  /** @type {string[]} */
  const wrong = [];
  if (digest !== entry.digest) {
    now.wrong.hash += 1;
    wrong.push("its content was changed: the hash is another");
  }
  let said = null;
  try {
    said = predicateOf(entry.envelope);
    const follows =
      said.sequence === number &&
      entry.sequence === number &&
      said.run === section.dataset.run &&
      said.previous === (number === 1 ? null : now.digest) &&
      (now.before === null ||
        (said.before === now.before.after && said.register_before === now.before.register_after));
    if (!follows) {
      now.wrong.chain += 1;
      wrong.push("it does not follow from the receipt before it");
    }
  } catch {
    now.wrong.chain += 1;
    wrong.push("it can't be read");
  }
  if (!entry.envelope.signatures.length) now.unsigned += 1;
  else {
    const signed = await isSignedEnvelope(entry.envelope, now.keys).catch(() => false);
    if (signed === null) now.unknown += 1;
    if (signed === false) {
      now.wrong.signatures += 1;
      wrong.push("no key of the operator signed it");
    }
  }
  await now.grown.add(leaf);
  now.leaves.push(leaf);
  now.entries.push(entry);
  now.digest = digest;
  now.before = said;
  tree.leaf(number - 1, !wrong.length);
  show(number, said, digest, wrong);
}

/**
 * @param {number} number
 * @param {any} said
 * @param {string} digest
 * @param {string[]} wrong
 */
function show(number, said, digest, wrong) {
  const mark = wrong.length
    ? make("span", { class: "mark-bad" }, `✗ ${wrong.join("; ")}`)
    : make("span", { class: "mark-good" }, "✓ hash, chain, signature");
  const prove = make("button", { type: "button", class: "plain small", "data-prove": `${number}` });
  prove.append("Prove", make("span", { class: "hidden" }, ` that receipt ${number} is in the log`));
  const row = make(
    "tr",
    wrong.length ? { class: "broken" } : {},
    make("th", { scope: "row" }, `${number}`),
    make("td", {}, said ? moment(said.completed_at) : "–"),
    make("td", {}, said ? about(said) : "–"),
    make("td", {}, make("code", { title: digest }, `${digest.slice(0, 16)}…`)),
    make("td", {}, mark),
    make("td", {}, prove),
  );
  body.prepend(row);
  tellTimes(row);
  while (body.rows.length > SHOWN) body.lastElementChild?.remove();
  byId("entries").hidden = false;
  const hidden = now.entries.length - body.rows.length;
  byId("earlier").hidden = hidden <= 0;
  byId("earlier").textContent = `${plural(hidden, "earlier receipt")} checked as well.`;
}

/** Fetch and check what the log has beyond what is known. */
async function checkEntries() {
  for (;;) {
    const start = now.entries.length + 1;
    const page = await json(`/api/v1/log?start=${start}&limit=${PAGE}`);
    now.checkpoint = page.checkpoint;
    tree.shape(page.size);
    for (const entry of page.entries) {
      await checkEntry(entry);
      tell("hash", "working", `${now.entries.length} of ${page.size} hashed here`);
      if (page.size <= FEW) await new Promise((done) => setTimeout(done, 25));
    }
    if (now.entries.length >= page.size || !page.entries.length) return page.size;
  }
}

/** @param {number} size that the service states */
function judgeEntries(size) {
  const { wrong } = now;
  const count = now.entries.length;
  const all = plural(count, "receipt");
  if (wrong.hash) tell("hash", "bad", `${wrong.hash} of ${all} changed: the hash is another`);
  else if (count !== size) tell("hash", "bad", `${size} receipts are stated, ${count} were given`);
  else tell("hash", "good", `${all} hashed here with SHA-256`);
  if (wrong.chain) tell("chain", "bad", `broken at ${plural(wrong.chain, "receipt")}`);
  else tell("chain", "good", "each receipt follows from the one before it");
  if (wrong.signatures) tell("signatures", "bad", `${wrong.signatures} of ${all} not signed by the operator`);
  else if (now.unknown) tell("signatures", "fair", "this browser has no Ed25519: the service's word");
  else if (now.unsigned) tell("signatures", "fair", `${plural(now.unsigned, "receipt")} unsigned`);
  else tell("signatures", "good", `${all} signed by a key of the operator`);
}

/** Compare the root with the signed checkpoint. */
async function judgeRoot() {
  const root = await now.grown.root();
  if (now.checkpoint === null) {
    tell("root", "fair", `${hex(root).slice(0, 16)}…, and no checkpoint to compare it with`);
    tell("checkpoint", "fair", "none: the last receipt is unsigned");
    tree.crown(true);
    return root;
  }
  let read;
  try {
    read = readCheckpoint(now.checkpoint);
  } catch (error) {
    tell("root", "bad", "there is no readable checkpoint to compare it with");
    tell("checkpoint", "bad", String(error instanceof Error ? error.message : error));
    tree.crown(false);
    return root;
  }
  const fits = same(root, read.root) && read.size === now.grown.size;
  tree.crown(fits);
  if (fits) tell("root", "good", `${hex(root).slice(0, 16)}…, the same as in the checkpoint`);
  else tell("root", "bad", `${hex(root).slice(0, 16)}… here, ${hex(read.root).slice(0, 16)}… in the checkpoint`);
  const signed = await isSignedNote(read, now.keys);
  const key = now.keys.length ? await keyId(now.keys[0]) : "";
  if (read.origin !== section.dataset.run) tell("checkpoint", "bad", "it is of another log");
  else if (signed) tell("checkpoint", "good", `of ${plural(read.size, "receipt")}, signed by ${key}`);
  else if (signed === null) tell("checkpoint", "fair", "this browser has no Ed25519: the service's word");
  else tell("checkpoint", "bad", "no key of the operator signed it");
  return root;
}

const place = `grapheraser log ${section.dataset.run}`;

/** What this browser saw last. @returns {{size: number, root: string, at: string} | null} */
function remembered() {
  try {
    const found = JSON.parse(localStorage.getItem(place) ?? "null");
    return found && Number.isInteger(found.size) && found.size > 0 ? found : null;
  } catch {
    return null;
  }
}

/** The root of the first entries. @param {number} size */
async function rootAt(size) {
  const first = new Growing();
  for (const leaf of now.leaves.slice(0, size)) await first.add(leaf);
  return first.root();
}

/**
 * Whether the log begins as one of a smaller size did, by the service's proof.
 * @param {number} size
 * @param {Uint8Array} old
 * @param {Uint8Array} root
 */
async function grewFrom(size, old, root) {
  if (size > now.grown.size) return false;
  const path = `/api/v1/log/consistency?first=${size}&second=${now.grown.size}`;
  const { proof } = await json(path);
  const parts = proof.map(fromHex);
  const proved = await isConsistent(size, now.grown.size, parts, old, root);
  return proved && same(await rootAt(size), old) ? parts.length : false;
}

/** @param {Uint8Array} root */
async function judgeGrowth(root) {
  const known = remembered();
  const size = known?.size ?? Math.floor(now.grown.size / 2);
  if (size < 1) tell("grown", "good", "this is its first receipt");
  else {
    const old = known ? fromHex(known.root) : await rootAt(size);
    const hashes = await grewFrom(size, old, root).catch(() => false);
    const since = known ? "as this browser saw it" : "its first half; this browser had not seen it before";
    if (hashes === false) {
      const lost = size > now.grown.size ? `it had ${size} receipts and now has ${now.grown.size}` : "it does not begin as it did";
      tell("grown", "bad", `the log was rewritten: ${lost}`);
    } else {
      tell("grown", "good", `from ${size} to ${now.grown.size}, proved with ${hashes} ${hashes === 1 ? "hash" : "hashes"} (${since})`);
    }
  }
  if (now.broken) return;
  const seen = { size: now.grown.size, root: hex(root), at: new Date().toISOString() };
  localStorage.setItem(place, JSON.stringify(seen));
}

/** Check all, or what is new. @param {boolean} afresh */
async function check(afresh) {
  if (afresh) {
    now = new Checking();
    body.replaceChildren();
    tree.leaves.clear();
    tree.root = "";
  }
  try {
    if (!now.keys.length) now.keys = readKeys(await (await call("/api/v1/log/keys")).text());
    const size = await checkEntries();
    if (!size) {
      conclude("good", "The log is empty: nothing has been changed since the model was fitted.");
      return;
    }
    judgeEntries(size);
    await judgeGrowth(await judgeRoot());
    if (now.broken) conclude("bad", "✗ The log is broken: what the service gave does not add up. See below where.");
    else conclude("good", `✓ The log holds: ${plural(now.entries.length, "receipt")} checked by your browser, none changed, none missing.`);
  } catch (error) {
    conclude("bad", `The log could not be checked: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {HTMLElement} button */
async function prove(button) {
  const number = Number(button.dataset.prove);
  const cell = /** @type {HTMLElement} */ (button.parentElement);
  const size = now.grown.size;
  let words;
  let good = false;
  try {
    const found = await json(`/api/v1/log/${number}/proof?size=${size}`);
    const proof = found.proof.map(fromHex);
    good = await isIncluded(now.leaves[number - 1], number - 1, size, proof, await now.grown.root());
    words = good
      ? `✓ ${proof.length} ${proof.length === 1 ? "hash leads" : "hashes lead"} to the root`
      : "✗ the proof does not lead to the root";
  } catch (error) {
    words = `✗ ${error instanceof Error ? error.message : error}`;
  }
  tree.way(number - 1);
  const said = make("span", { class: good ? "mark-good" : "mark-bad", tabindex: "-1" }, words);
  cell.replaceChildren(said);
  said.focus();
}

/** @param {File} file */
async function compare(file) {
  const said = byId("compared");
  /** @param {string} state @param {string} words */
  const say = (state, words) => {
    said.hidden = false;
    said.dataset.state = state;
    said.textContent = words;
  };
  try {
    const kept = readCheckpoint(await file.text());
    const signed = await isSignedNote(kept, now.keys);
    if (kept.origin !== section.dataset.run) say("bad", "✗ The checkpoint is of another log.");
    else if (signed === false) say("bad", "✗ No key of the operator signed this checkpoint.");
    else {
      const hashes = await grewFrom(kept.size, kept.root, await now.grown.root());
      if (hashes === false) say("bad", "✗ The log was rewritten: it does not begin as it did then.");
      else say("good", `✓ The log had ${plural(kept.size, "receipt")} then and only grew since.`);
    }
  } catch (error) {
    say("bad", `✗ ${error instanceof Error ? error.message : error}`);
  }
}

/** All that was checked, as one file. */
async function download() {
  const keys = await (await call("/api/v1/log/keys")).text();
  const content = {
    run: section.dataset.run,
    size: now.entries.length,
    checkpoint: now.checkpoint,
    keys,
    entries: now.entries,
  };
  const url = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
  const link = make("a", { href: url, download: `log-${now.entries.length}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

let busy = Promise.resolve();
/** One check after the other. @param {() => Promise<void>} work */
function next(work) {
  busy = busy.then(work).catch(() => {});
}

body.addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest("button[data-prove]");
  if (button instanceof HTMLElement) next(() => prove(button));
});
byId("again").addEventListener("click", () => next(() => check(true)));
byId("export").addEventListener("click", () => next(download));
byId("kept").addEventListener("change", (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const [file] = input.files ?? [];
  if (file) next(() => compare(file));
  input.value = ""; // so that the same file can be chosen again
});
next(() => check(true));
follow((step) => {
  if (step.state === "published") next(() => check(now.broken));
});
