// The page of the audit: the log, receipts that are brought, and verification.

import "./log.js";
import "./brought.js";
import "./verify.js";
