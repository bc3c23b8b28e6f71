// What to forget: a list, the plan for it, the request, and its steps.

import { json } from "./api.js";
import { byId, make, percent, plural } from "./dom.js";
import { follow } from "./live.js";

const STEPS = ["received", "planned", "retraining", "published", "erased", "completed"];
const ABOUT = {
  received: "it is on the disk",
  planned: "a batch has taken it",
  retraining: "the shards are retrained",
  published: "the model without it is served",
  erased: "old files and all names are destroyed",
  completed: "the receipt can be collected",
};
const MAX_LISTED = 8;
const PAUSE = 150; // milliseconds after a change, before a plan is asked for

/** Ids are sent as numbers, whatever their size; names as texts. @param {string} node @param {boolean} named */
export function spelled(node, named) {
  if (named || Number.isSafeInteger(Number(node))) return named ? node : Number(node);
  // @ts-ignore: newer than the types of many editors
  return JSON.rawJSON ? JSON.rawJSON(node) : Number(node);
}

/** The list of what to forget. */
export class Forgetting {
  /**
   * @param {boolean} named whether nodes have names
   * @param {() => void} changed what is chosen
   * @param {(node: string) => void} look at a node
   */
  constructor(named, changed, look) {
    this.named = named;
    this.changed = changed;
    this.look = look;
    /** @type {Set<string>} */
    this.nodes = new Set();
    /** @type {Map<string, [string, string]>} */
    this.edges = new Map();
    this.nouns = ["node", "edge"]; // of what is in each of them
    this.asking = 0;
    /** @type {number | undefined} */
    this.timer = undefined;
    byId("ask").addEventListener("click", () => this.submit());
    byId("clear").addEventListener("click", () => this.clear());
  }

  /** @param {string[]} nodes @param {boolean} [toggles] */
  addNodes(nodes, toggles = false) {
    for (const node of nodes) {
      if (toggles && this.nodes.has(node)) this.nodes.delete(node);
      else this.nodes.add(node);
    }
    this.update();
  }

  /** @param {[string, string]} edge */
  addEdge(edge) {
    const key = JSON.stringify(this.nouns[1] === "edge" ? [...edge].sort() : edge);
    if (this.edges.has(key)) this.edges.delete(key);
    else this.edges.set(key, edge);
    this.update();
  }

  clear() {
    this.nodes.clear();
    this.edges.clear();
    this.update();
  }

  /** Leave out what is no longer there. @param {(node: string) => boolean} isThere */
  keep(isThere) {
    const before = this.nodes.size + this.edges.size;
    for (const node of [...this.nodes]) if (!isThere(node)) this.nodes.delete(node);
    for (const [key, ends] of [...this.edges]) if (!ends.every(isThere)) this.edges.delete(key);
    if (this.nodes.size + this.edges.size !== before) this.update();
    else if (before) this.plan();
  }

  get words() {
    const parts = [];
    if (this.nodes.size) parts.push(plural(this.nodes.size, this.nouns[0]));
    if (this.edges.size) parts.push(plural(this.edges.size, this.nouns[1]));
    return parts.join(" and ");
  }

  get body() {
    const spell = (/** @type {string} */ node) => spelled(node, this.named);
    return {
      nodes: [...this.nodes].map(spell),
      edges: [...this.edges.values()].map((ends) => ends.map(spell)),
    };
  }

  update() {
    this.changed();
    const any = this.nodes.size + this.edges.size > 0;
    byId("forget").hidden = !any;
    byId("ask").textContent = `Forget ${this.words}`;
    byId("ask").disabled = true;
    const items = [
      ...[...this.nodes].map((node) => this.item(this.nouns[0], node, () => this.addNodes([node], true), node)),
      ...[...this.edges.values()].map((ends) =>
        this.item(this.nouns[1], `${ends[0]} – ${ends[1]}`, () => this.addEdge(ends), ends[0])),
    ];
    const hidden = items.length - MAX_LISTED;
    byId("chosen").replaceChildren(...items.slice(0, MAX_LISTED),
      ...(hidden > 0 ? [make("li", { class: "quiet" }, `and ${hidden.toLocaleString("en")} more`)] : []));
    clearTimeout(this.timer);
    if (any) this.timer = setTimeout(() => this.plan(), PAUSE);
  }

  /** @param {string} kind @param {string} words @param {() => void} remove @param {string} node */
  item(kind, words, remove, node) {
    return make("li", {}, make("span", { class: "quiet" }, kind),
      make("button", { class: "link", click: () => this.look(node) }, words),
      make("button", { class: "plain small", "aria-label": `Leave ${kind} ${words} out`, click: remove }, "×"));
  }

  async plan() {
    const asking = ++this.asking;
    try {
      const plan = await json("/api/v1/plan", { method: "POST", body: this.body });
      if (asking !== this.asking) return;
      byId("plan").replaceChildren(...planned(plan));
      byId("ask").disabled = false;
    } catch (error) {
      if (asking !== this.asking) return;
      byId("plan").replaceChildren(refusal(error));
      byId("ask").disabled = true;
    }
  }

  async submit() {
    byId("ask").disabled = true;
    const words = this.words;
    try {
      // One key for one click: a request that is sent twice is one.
      const headers = { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) };
      const request = await json("/api/v1/requests", { method: "POST", body: this.body, headers });
      watch(request, words);
      this.clear();
      byId("asked-title").focus();
    } catch (error) {
      byId("plan").replaceChildren(refusal(error));
    }
  }
}

/** The list of a recommender, whose nodes are users and items: even and odd, or named so. */
export class Sides extends Forgetting {
  /** @param {string} node @returns {[string, string]} */
  side(node) {
    const at = node.indexOf("/");
    if (this.named) return [node.slice(0, at), node.slice(at + 1)];
    return [BigInt(node) % 2n ? "item" : "user", String(BigInt(node) / 2n)];
  }

  get words() {
    const { users, items, interactions } = this.body;
    return [[users, "user"], [items, "item"], [interactions, "interaction"]]
      .filter(([some]) => some.length).map(([some, noun]) => plural(some.length, noun)).join(" and ");
  }

  /** @returns {any} */
  get body() {
    const nodes = [...this.nodes].map((node) => this.side(node));
    const of = (/** @type {string} */ side) => nodes.filter(([own]) => own === side)
      .map(([, id]) => spelled(id, this.named));
    const interactions = [...this.edges.values()].map((ends) => ends.map((node) => this.side(node))
      .sort(([side]) => (side === "user" ? -1 : 1)).map(([, id]) => spelled(id, this.named)));
    return { users: of("user"), items: of("item"), interactions };
  }

  /** @param {string} kind @param {string} words @param {() => void} remove @param {string} node */
  item(kind, words, remove, node) {
    const [side, id] = this.side(node);
    return kind === this.nouns[0] ? super.item(side, id, remove, node)
      : super.item("interaction", words, remove, node);
  }
}

/** @param {any} error */
function refusal(error) {
  const said = [error.message, error.hint].filter(Boolean)
    .map((text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, "."));
  return make("div", { class: "alert", role: "alert", id: "refused" },
    make("p", {}, make("b", {}, "This can't be forgotten as it is. ")), make("p", {}, said.join(" ")));
}

/** @param {any} plan what `/api/v1/plan` answers */
function planned(plan) {
  const { cost } = plan;
  const share = cost.of_nodes ? cost.nodes / cost.of_nodes : 0;
  const time = cost.seconds === null ? "" : ` Recent requests took ${seconds(cost.seconds)}, waiting included.`;
  const work = cost.shards
    ? `${plural(cost.shards, "shard")} of ${cost.of_shards} ${cost.shards === 1 ? "is" : "are"} retrained, ` +
      `on ${plural(cost.nodes, "node")}: ${percent(share)} of training from scratch.`
    : "No shard is retrained: none was trained on it.";
  const exact = `${plan.statement.charAt(0).toUpperCase()}${plan.statement.slice(1)}.`;
  return [
    make("dl", { class: "plan" },
      make("dt", {}, "Shards"),
      make("dd", {}, plan.shards.length ? "" : "None is touched.",
        plan.shards.length ? make("ul", {}, ...plan.shards.slice(0, 6).map((/** @type {any} */ s) =>
          make("li", {}, make("b", {}, `shard ${s.shard}`), `: ${s.why}`))) : null,
        plan.shards.length > 6 ? make("span", { class: "quiet" }, `and ${plural(plan.shards.length - 6, "other shard")}`) : null,
        plan.missing ? make("p", {}, `${plural(plan.missing, "thing")} of it is not there.`) : null),
      make("dt", {}, "Cost"), make("dd", {}, `${work}${time}`),
      make("dt", {}, "Guarantee"), make("dd", {}, make("b", {}, exact), ` ${plan.guarantee}`),
      ...(plan.notes.length ? [make("dt", {}, "Note"), make("dd", {}, plan.notes.join("; "))] : []),
    ),
    make("details", {}, make("summary", {}, "What it does not reach"),
      make("ul", {}, ...plan.out_of_scope.map((/** @type {string} */ line) => make("li", {}, line)))),
  ];
}

/** @param {number} count */
const seconds = (count) => (count < 10 ? `${count.toFixed(1)} s` : count < 120
  ? `${Math.round(count)} s` : `${Math.round(count / 60)} min`);

/**
 * Show a request, and every step that it takes.
 * @param {any} request @param {string} words what it is about
 */
function watch(request, words) {
  const place = byId("asked");
  place.hidden = false;
  const state = { now: request };
  const write = () => place.replaceChildren(...steps(state.now, words));
  write();
  let latest = 0;
  follow(async (step) => {
    if (step.request !== request.id) return;
    const mine = ++latest;
    const found = await json(`/api/v1/requests/${request.id}`).catch(() => null);
    if (found === null || mine !== latest) return;
    state.now = found;
    write();
  });
}

/** @param {any} request @param {string} words */
function steps(request, words) {
  const reached = STEPS.indexOf(request.state);
  const failed = request.state === "failed" || request.state === "cancelled";
  const done = request.state === "completed";
  const title = make("h2", { id: "asked-title", tabindex: "-1" },
    `${done ? "Forgotten" : failed ? "Not forgotten" : "Forgetting"}: ${words}`);
  const page = `/dashboard/requests/${request.id}`;
  const link = make("a", { href: page }, "The request");
  if (failed) {
    const why = request.reason ?? `It is ${request.state}.`;
    return [title, make("p", { class: "alert", role: "alert" },
      `${why.charAt(0).toUpperCase()}${why.slice(1).replace(/\.?$/, ".")}`,
      request.retry_at ? " It is tried again by itself." : " It waits until somebody retries or cancels it."), link];
  }
  const list = make("ol", { class: "steps" }, ...STEPS.map((name, at) => {
    const kind = at <= reached ? "done" : at === reached + 1 ? "next" : "open";
    return make("li", { class: kind, "aria-current": kind === "next" ? "step" : null },
      make("b", {}, name), make("span", { class: "hidden" }, kind === "done" ? ", done" : ""),
      make("br"), make("span", { class: "quiet" }, ABOUT[/** @type {keyof typeof ABOUT} */ (name)]));
  }));
  const receipt = done && request.receipts
    ? [make("a", { class: "button", href: `/api/v1/requests/${request.id}/receipt`,
      download: `receipt-${request.id.slice(0, 8)}.json` }, "Download the receipt")]
    : [];
  return [title, request.reason && done ? make("p", { class: "alert note" }, request.reason) : "",
    list, make("p", { class: "buttons" }, ...receipt, link)];
}
