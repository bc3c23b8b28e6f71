// Keep a page in step: when something happens, the server renders it anew, and what has changed of
// the regions marked `data-live` is put in place.

import { call } from "./api.js";
import { follow } from "./live.js";
import { tellTimes } from "./shell.js";

const GAP = 400; // milliseconds between two fetches
const SETTLED = 1500; // after the last step: by then every process serves the new version
let busy = false;
let again = false;

/** Fetch the page once more; calls that come meanwhile become one more fetch. */
export async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  try {
    const answer = await call(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected) return location.reload();
    replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The service is away; the stream says so, and reconnects.
  }
  setTimeout(() => {
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }, GAP);
}

/** @param {Document} page */
function replace(page) {
  for (const old of document.querySelectorAll("[data-live]")) {
    const made = page.getElementById(old.id);
    if (made === null) continue;
    tellTimes(made);
    if (old.innerHTML === made.innerHTML) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement?.id : "";
    old.replaceChildren(...made.childNodes);
    if (focused) document.getElementById(focused)?.focus();
  }
  document.dispatchEvent(new CustomEvent("refreshed"));
}

/**
 * Refresh the page whenever a request takes a step.
 * @param {(step: import("./live.js").Step) => boolean} [concerns] whether the page shows it
 */
export function stayInStep(concerns = () => true) {
  let settled = 0;
  follow((step) => {
    if (!concerns(step)) return;
    refresh();
    clearTimeout(settled);
    settled = setTimeout(refresh, SETTLED);
  });
}
