// The log's Merkle tree (RFC 9162), its signed checkpoints (C2SP signed-note, tlog-checkpoint) and
// the envelopes of its entries (DSSE), worked out in the browser. Nothing here asks the service.

const utf8 = new TextEncoder();

/** @param {Uint8Array[]} parts */
function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {Uint8Array[]} parts @returns {Promise<Uint8Array>} */
export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {string} text */
export function fromHex(text) {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new Error("not hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {string} text */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** @param {Uint8Array} a @param {Uint8Array} b */
export function same(a, b) {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/**
 * JSON with sorted keys, no spaces and ASCII only: the one spelling that is hashed.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const names = Object.keys(value).sort();
    return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`).join(",")}}`;
  }
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** @param {Uint8Array} entry */
export const leafHash = (entry) => sha256(Uint8Array.of(0), entry);

/** @param {Uint8Array} left @param {Uint8Array} right */
export const nodeHash = (left, right) => sha256(Uint8Array.of(1), left, right);

/** A tree that leaves are added to: the roots of its complete subtrees, the largest first. */
export class Growing {
  constructor() {
    this.size = 0;
    /** @type {Uint8Array[]} */
    this.roots = [];
  }

  /** @param {Uint8Array} leaf its hash */
  async add(leaf) {
    let node = leaf;
    for (let size = this.size; size % 2 === 1; size = Math.floor(size / 2)) {
      node = await nodeHash(/** @type {Uint8Array} */ (this.roots.pop()), node);
    }
    this.roots.push(node);
    this.size += 1;
  }

  /** The root of what was added so far. */
  async root() {
    if (!this.roots.length) return sha256();
    let root = this.roots[this.roots.length - 1];
    for (let i = this.roots.length - 2; i >= 0; i -= 1) root = await nodeHash(this.roots[i], root);
    return root;
  }
}

/**
 * Whether a proof leads from a leaf to the root (RFC 9162, 2.1.3.2).
 * @param {Uint8Array} leaf
 * @param {number} index
 * @param {number} size
 * @param {Uint8Array[]} proof
 * @param {Uint8Array} root
 */
export async function isIncluded(leaf, index, size, proof, root) {
  if (index >= size) return false;
  let place = index;
  let last = size - 1;
  let found = leaf;
  for (const part of proof) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      found = await nodeHash(part, found);
      while (place % 2 === 0 && place !== 0) {
        place = Math.floor(place / 2);
        last = Math.floor(last / 2);
      }
    } else {
      found = await nodeHash(found, part);
    }
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && same(found, root);
}

/**
 * Whether a log of one size begins as that of a smaller size (RFC 9162, 2.1.4.2).
 * @param {number} first
 * @param {number} second
 * @param {Uint8Array[]} proof
 * @param {Uint8Array} firstRoot
 * @param {Uint8Array} secondRoot
 */
export async function isConsistent(first, second, proof, firstRoot, secondRoot) {
  if (first < 1 || first > second) return false;
  if (first === second) return proof.length === 0 && same(firstRoot, secondRoot);
  const whole = Math.log2(first) % 1 === 0;
  const shown = whole ? [firstRoot, ...proof] : proof;
  if (!shown.length) return false;
  let place = first - 1;
  let last = second - 1;
  while (place % 2 === 1) {
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  }
  let was = shown[0];
  let is = shown[0];
  for (const part of shown.slice(1)) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      was = await nodeHash(part, was);
      is = await nodeHash(part, is);
      while (place % 2 === 0 && place !== 0) {
        place = Math.floor(place / 2);
        last = Math.floor(last / 2);
      }
    } else {
      is = await nodeHash(is, part);
    }
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && same(was, firstRoot) && same(is, secondRoot);
}

/**
 * @typedef {{origin: string, size: number, root: Uint8Array, text: string,
 *            signatures: {name: string, bytes: Uint8Array}[]}} Checkpoint
 */

/**
 * Read a signed checkpoint, whoever signed it.
 * @param {string} note
 * @returns {Checkpoint}
 */
export function readCheckpoint(note) {
  const end = note.lastIndexOf("\n\n");
  const text = note.slice(0, end + 1);
  const [origin, size, root] = text.split("\n");
  if (end < 0 || !origin || !/^\d{1,15}$/.test(size ?? "") || !root) {
    throw new Error("not a checkpoint: it needs an origin, a size and a root");
  }
  const lines = note.slice(end + 2).split("\n").filter(Boolean);
  const signatures = lines.map((line) => {
    const [dash, name, encoded] = line.split(" ");
    if (dash !== "\u2014" || !name || !encoded) throw new Error("a malformed signature");
    return { name, bytes: fromBase64(encoded) };
  });
  return { origin, size: Number(size), root: fromBase64(root), text, signatures };
}

/**
 * The raw Ed25519 keys of PEM blocks.
 * @param {string} pem
 */
export function readKeys(pem) {
  const blocks = pem.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g) ?? [];
  // The last 32 bytes of such a block are the key.
  return blocks.map((block) => fromBase64(block.replace(/-----[^-]*-----|\s/g, "")).slice(-32));
}

/** What people tell keys apart by. @param {Uint8Array} key */
export const keyId = async (key) => hex(await sha256(key)).slice(0, 16);

/**
 * Whether one of these keys made a signature; null where the browser has no Ed25519.
 * @param {Uint8Array} message
 * @param {Uint8Array} signature
 * @param {Uint8Array[]} keys
 */
export async function isSignedBy(message, signature, keys) {
  for (const raw of keys) {
    let key;
    try {
      key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
    } catch {
      return null;
    }
    if (await crypto.subtle.verify({ name: "Ed25519" }, key, signature, message)) return true;
  }
  return false;
}

/**
 * Whether one of these keys signed a checkpoint, in the name of its log.
 * @param {Checkpoint} checkpoint
 * @param {Uint8Array[]} keys
 */
export async function isSignedNote(checkpoint, keys) {
  const message = utf8.encode(checkpoint.text);
  /** @type {boolean | null} */
  let found = false;
  for (const { name, bytes } of checkpoint.signatures) {
    if (name !== checkpoint.origin) continue;
    for (const key of keys) {
      const id = await sha256(utf8.encode(`${name}\n`), Uint8Array.of(1), key);
      if (!same(id.slice(0, 4), bytes.slice(0, 4))) continue;
      const signed = await isSignedBy(message, bytes.slice(4), [key]);
      if (signed) return true;
      found = signed;
    }
  }
  return found;
}

/**
 * @typedef {{payload: string, payloadType: string,
 *            signatures: {keyid: string, sig: string}[]}} Envelope
 */

/** The bytes of an envelope that are hashed. @param {Envelope} envelope */
export const bytesOf = (envelope) => utf8.encode(canonical(envelope));

/** What a receipt says. @param {Envelope} envelope @returns {any} */
export function predicateOf(envelope) {
  return JSON.parse(new TextDecoder().decode(fromBase64(envelope.payload))).predicate;
}

/**
 * Whether one of these keys signed an envelope; null where the browser has no Ed25519.
 * @param {Envelope} envelope
 * @param {Uint8Array[]} keys
 */
export async function isSignedEnvelope(envelope, keys) {
  const payload = fromBase64(envelope.payload);
  const kind = utf8.encode(envelope.payloadType);
  const head = utf8.encode(`DSSEv1 ${kind.length} `);
  const middle = utf8.encode(` ${payload.length} `);
  const message = joined(head, kind, middle, payload);
  /** @type {boolean | null} */
  let found = false;
  for (const { sig } of envelope.signatures) {
    const signed = await isSignedBy(message, fromBase64(sig), keys);
    if (signed) return true;
    found = signed;
  }
  return found;
}
