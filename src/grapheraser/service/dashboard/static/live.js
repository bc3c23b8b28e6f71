// Every step of every request, as it happens: one stream for a window, for as long as it is seen.

import { call } from "./api.js";

const STATES = [
  "received", "planned", "retraining", "published", "erased", "completed", "failed", "cancelled",
];

/**
 * @typedef {{number: number, request: string, state: string, at: string, version: number | null,
 *            reason: string | null}} Step
 */

/** @type {Set<(step: Step) => void>} */
const listeners = new Set();
/** @type {EventSource | null} */
let stream = null;
/** @type {number | null} */
let last = null;

/**
 * Be told of every step from the one on that the page was made after.
 * @param {(step: Step) => void} listener
 */
export function follow(listener) {
  listeners.add(listener);
  if (stream === null && !document.hidden) open();
}

function open() {
  const made = document.querySelector('meta[name="last-event"]')?.getAttribute("content");
  const after = last ?? (made === undefined || made === null ? null : Number(made));
  stream = new EventSource(`/api/v1/events${after === null ? "" : `?after=${after}`}`);
  stream.addEventListener("open", () => say("live", "Live"));
  stream.addEventListener("error", () => {
    say("waiting", "Reconnecting");
    if (stream?.readyState !== EventSource.CLOSED) return;
    close();
    // The session is over, or the service is away: the call finds out which.
    call("/api/v1/model").catch(() => {});
    setTimeout(() => stream ?? (document.hidden || open()), 3000);
  });
  for (const state of STATES) {
    stream.addEventListener(state, (event) => {
      const step = JSON.parse(/** @type {MessageEvent} */ (event).data);
      last = step.number;
      for (const listener of listeners) listener(step);
    });
  }
}

function close() {
  stream?.close();
  stream = null;
}

// A browser keeps few connections to one host: a window that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else if (stream === null && listeners.size) open();
});
addEventListener("pagehide", close);

/**
 * @param {string} kind
 * @param {string} words
 */
function say(kind, words) {
  const place = document.getElementById("live");
  if (place === null || place.dataset.kind === kind) return;
  place.hidden = false;
  place.dataset.kind = kind;
  place.textContent = words;
}
