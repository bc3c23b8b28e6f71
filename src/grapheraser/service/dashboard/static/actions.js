// Buttons that call a route of the API: `data-call="DELETE /api/v1/..."`, after a question where
// `data-confirm` has one.

import { call } from "./api.js";

/**
 * Say what went wrong, and what to do; or, with null, nothing any more.
 * @param {string} id of the place
 * @param {any} problem
 */
export function tell(id, problem) {
  const place = document.getElementById(id);
  if (place === null) return;
  place.hidden = problem === null;
  if (problem !== null) {
    const said = [problem.message, problem.hint].filter(Boolean).map(sentence);
    place.textContent = said.join(" ");
  }
}

/** @param {string} text */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");

/** @param {string} question @returns {Promise<boolean>} */
function sure(question) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("sure"));
  /** @type {HTMLElement} */ (document.getElementById("sure-words")).textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/**
 * Let buttons of the page do what they say.
 * @param {() => void} then once it is done
 */
export function actOnButtons(then) {
  document.addEventListener("click", async (event) => {
    const button = /** @type {Element} */ (event.target).closest("button[data-call]");
    if (!(button instanceof HTMLButtonElement)) return;
    const { call: route = "", confirm: question } = button.dataset;
    if (question && !(await sure(question))) return;
    const [method, path] = route.split(" ");
    button.disabled = true;
    tell("problem", null);
    try {
      await call(path, { method });
    } catch (error) {
      tell("problem", error);
    }
    button.disabled = false;
    then();
  });
}
