import type { Departure } from '../src/warehouse/effects.js';

/** For tests of the client itself: what it sends is in no journal. */
export const DEPARTURE = {} as Departure;
