// The list of requests stays in step; and the form that asks to forget.

import { json } from "./api.js";
import { stayInStep } from "./refresh.js";
import { tell } from "./actions.js";

stayInStep();

const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("ask"));
const what = /** @type {HTMLSelectElement} */ (document.getElementById("what"));
const which = /** @type {HTMLInputElement} */ (document.getElementById("which"));

/** @param {string} text */
const listed = (text) => text.split(/[,;\s]+/).filter((part) => part !== "");

/** Ids are sent as numbers, names as texts. @param {string} text */
const node = (text) => (/^\d+$/.test(text) ? Number(text) : text);

/** What the form asks for, as the API takes it. */
function asked() {
  const text = which.value.trim();
  if (what.value === "subject") return { subject: text };
  if (what.value !== "edges") return { [what.value]: listed(text).map(node) };
  return { edges: listed(text).map((pair) => pair.split("-").map(node)) };
}

function explain() {
  const about = what.selectedOptions[0]?.dataset.about ?? "";
  /** @type {HTMLElement} */ (document.getElementById("which-about")).textContent = about;
}

if (dialog !== null) {
  document.getElementById("new")?.addEventListener("click", () => dialog.showModal());
  document.getElementById("ask-close")?.addEventListener("click", () => dialog.close());
  what.addEventListener("change", explain);
  explain();
  document.getElementById("asked")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    tell("ask-problem", null);
    try {
      const body = asked();
      // The same key for the same click: a request that is sent twice is one.
      const headers = { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) };
      const made = await json("/api/v1/requests", { method: "POST", body, headers });
      location.assign(`/dashboard/requests/${made.id}`);
    } catch (error) {
      tell("ask-problem", error);
    }
  });
  if (location.hash === "#new") dialog.showModal();
}
