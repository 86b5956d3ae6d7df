import type { Departure } from '../src/warehouse/effects.js';

// For tests of the client itself: what it sends is in no journal.
const nothing: unknown = {};
export const DEPARTURE = nothing as Departure;
