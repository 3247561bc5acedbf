// @ts-check
// The data that the page carries: the description of the model, and its numbers.

/** Read the text of a script element of the page. @type {(id: string) => string} */
export function scriptText(id) {
  return (document.getElementById(id)?.textContent ?? "").trim();
}

/** Return the numbers, which stand on the page as base64 of float32. */
export function readNumbers() {
  const text = scriptText("weights");
  const decoder = /** @type {any} */ (Uint8Array);
  if (decoder.fromBase64) return new Float32Array(decoder.fromBase64(text).buffer);
  const raw = atob(text),
    bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

/**
 * Divide the numbers into the parameters and the table of positions.
 * @param {any} head
 * @param {Float32Array} numbers
 */
export function splitNumbers(head, numbers) {
  /** @type {Map<string, {shape: number[], data: Float32Array}>} */
  const parameters = new Map();
  let start = 0;
  for (const [name, shape] of head.parameters) {
    const length = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    parameters.set(name, { shape, data: numbers.subarray(start, start + length) });
    start += length;
  }
  return { parameters, positions: head.positions ? numbers.subarray(start) : null };
}
