// @ts-check
// The chosen map of attention in the address of the page.
import { QUANTITIES } from "./attention_maps.js";

/**
 * What the address says of the view of attention.
 * @typedef {{sublayer: string, head: number, quantity: string, cell: number[], isPinned: boolean,
 *   lineHeads: number[]}} ChosenMap
 */

/** @param {ChosenMap} chosen */
export function addressOfMap({ sublayer, head, quantity, cell, isPinned, lineHeads }) {
  const flags = [
    ...(isPinned ? ["pinned"] : []),
    ...(lineHeads.length ? [`lines.${lineHeads.join(".")}`] : []),
  ];
  return [sublayer, head, quantity, ...cell, ...flags].join(":");
}

/**
 * Read what addressOfMap wrote.
 * @param {string} text
 * @param {{name: string}[]} sublayers
 * @returns {ChosenMap}
 */
export function mapFromAddress(text, sublayers) {
  const [name, head, quantity, t, s, ...flags] = text.split(":");
  const count = (/** @type {string | undefined} */ digits) => Math.max(0, Math.floor(Number(digits)) || 0);
  const [, ...heads] = (flags.find((flag) => flag.startsWith("lines.")) ?? "").split(".");
  return {
    sublayer: sublayers.some((one) => one.name === name) ? name : "",
    head: count(head),
    quantity: QUANTITIES.some(([known]) => known === quantity) ? quantity : "weights",
    cell: [count(t), count(s)],
    isPinned: flags.includes("pinned"),
    lineHeads: heads.map(count),
  };
}
