import { randomInt } from 'node:crypto';

export { createLogUpdate } from 'log-update';
export { wrapped } from '../format/wrapped.js';

/** Marks our own colors, so that a sequence in the text of a stranger, who cannot guess it, is none. */
export const MARK = Array.from({ length: 4 }, () => randomInt(1000, 10_000)).join(';');
export const MARKED = new RegExp(String.raw`(\u001b\[\d+);${MARK}m`);
