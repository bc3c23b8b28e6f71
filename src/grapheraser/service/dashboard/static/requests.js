// The list of requests stays in step; and the form that asks to forget.

import { Problem, json } from "./api.js";
import { stayInStep } from "./refresh.js";
import { tell } from "./actions.js";

stayInStep();

const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("ask"));
const what = /** @type {HTMLSelectElement} */ (document.getElementById("what"));
const which = /** @type {HTMLInputElement} */ (document.getElementById("which"));

const named = dialog?.dataset.named === "true";
const several = dialog?.dataset.several === "true"; // labels: one of a node's may go

/** Names may hold blanks and hyphens, so commas alone divide them. @param {string} text */
const listed = (text) =>
  (named ? text.split(",") : text.replace(/\s*-\s*/g, "-").split(/[,;\s]+/))
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** Ids are sent as numbers, names as texts. @param {string} text */
function node(text) {
  if (named || !/^\d+$/.test(text)) return text;
  if (Number.isSafeInteger(Number(text))) return Number(text);
  // A script would round it, and another node would be forgotten.
  throw new Problem({
    detail: `The id ${text} is too large for this form.`,
    hint: "use `grapheraser requests submit`.",
  });
}

/** What the form asks for, as the API takes it. */
function asked() {
  const text = which.value.trim();
  if (what.value === "subject") return { subject: text };
  const parts = listed(text).map((one) => one.split(named ? " - " : "-").map(node));
  if (["edges", "interactions", "graph_nodes", "graph_edges"].includes(what.value))
    return { [what.value]: parts };
  if (what.value !== "labels" || !several) return { [what.value]: listed(text).map(node) };
  return { labels: parts.map((part) => (part.length > 1 ? part : part[0])) };
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
