// Reading a safetensors file: its length and header, then the arrays one after the other.

const KINDS = {
  F32: Float32Array, I16: Int16Array, U32: Uint32Array, I64: BigInt64Array, U8: Uint8Array,
};

/**
 * @param {ArrayBuffer} content
 * @returns {{arrays: Record<string, any>, about: any}} the arrays by name, and the metadata
 */
export function readTensors(content) {
  const length = Number(new DataView(content).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
  /** @type {Record<string, any>} */
  const arrays = {};
  for (const [name, tensor] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [start, end] = tensor.data_offsets;
    const Kind = KINDS[/** @type {keyof typeof KINDS} */ (tensor.dtype)];
    arrays[name] = new Kind(content.slice(8 + length + start, 8 + length + end));
  }
  return { arrays, about: header.__metadata__ ?? {} };
}
