import type { Departure } from '../src/effects/journal.js';

// For tests of the client itself, whose requests are in no journal.
const nothing: unknown = {};
export const DEPARTURE = nothing as Departure;
