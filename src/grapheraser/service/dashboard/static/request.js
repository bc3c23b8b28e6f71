// One request: its steps as they happen, and what may be done about it.

import { actOnButtons } from "./actions.js";
import { refresh, stayInStep } from "./refresh.js";

const shown = document.getElementById("request")?.dataset.request;
stayInStep((step) => step.request === shown);
actOnButtons(refresh);
