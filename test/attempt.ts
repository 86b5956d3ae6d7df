import type { Attempt } from '../src/state/sender.js';

// For tests of the client itself, whose requests no state knows.
const nothing: unknown = {};
export const ATTEMPT = nothing as Attempt;
