// The overview stays in step with the requests, for those who may see them.

import { refresh, stayInStep } from "./refresh.js";

if (document.body.dataset.role === "reader") setInterval(refresh, 5000);
else stayInStep();
