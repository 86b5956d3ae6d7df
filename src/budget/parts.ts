/** The share of the hourly limit that days in progress may hold combined, which is the most a kill can waste. */
const PART_UNDER_WAY = 0.1;

/** The most requests that active leases hold combined, unless there is only one. */
export const mostUnderWay = (limit: number | 'unlimited'): number =>
  limit === 'unlimited' ? Infinity : Math.floor(limit * PART_UNDER_WAY);

/** How many requests of a lease must be free before it begins. */
export const fewestOf = (requests: number, limit: number | 'unlimited'): number =>
  Math.min(requests, Math.max(1, mostUnderWay(limit)));

/**
 * The requests of a lease in the parts in which they are sent: the first when all of it is free,
 * the others one by one.
 */
export const sendingParts = (requests: number, limit: number | 'unlimited'): number[] => {
  const first = fewestOf(requests, limit);
  return [first, ...Array<number>(requests - first).fill(1)];
};
