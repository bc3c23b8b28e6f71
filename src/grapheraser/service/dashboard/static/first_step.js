// The first thing to do: forget one node, and watch it.

import { Problem, json } from "./api.js";

const section = document.getElementById("first");
const button = section?.querySelector("button[data-forget]");
if (section && button instanceof HTMLButtonElement) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    const given = button.dataset.forget ?? "";
    const node = /^\d+$/.test(given) ? Number(given) : given;
    try {
      const made = await json("/api/v1/requests", { method: "POST", body: { nodes: [node] } });
      location.assign(`/dashboard/requests/${made.id}`);
    } catch (error) {
      button.disabled = false;
      const said = /** @type {HTMLElement} */ (section.querySelector("[role=alert]"));
      said.hidden = false;
      said.textContent = error instanceof Problem ? error.message : String(error);
    }
  });
}
