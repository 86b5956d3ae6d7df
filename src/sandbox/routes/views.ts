import type { ViewsResponse } from '../../api/schema.js';
import { faultyPage } from '../faults/paging.js';
import { type SandboxContext, tooMany, unacceptable } from '../http.js';
import { secondsUntilFree, withinHour } from '../rolling-hour.js';
import type { Traffic } from '../traffic/traffic.js';
import { pageOf } from '../views-page.js';
import { viewsQuerySchema } from '../views-query.js';

export interface ViewsOptions {
  readonly traffic: Traffic;
  readonly now: () => Date;
  readonly viewsPerHour: number | 'unlimited';
}

/** Get page views (interface 4.4). Every request with a valid key counts against the limit, bad ones too. */
export function getViews({ traffic, now, viewsPerHour }: ViewsOptions) {
  let uses: Date[] = [];
  const secondsToWait = (): number | undefined => {
    if (viewsPerHour === 'unlimited') return undefined;
    uses = withinHour(uses, now());
    const wait = secondsUntilFree(uses, viewsPerHour, now());
    if (wait === undefined) uses.push(now());
    return wait;
  };
  return (c: SandboxContext): Response => {
    const wait = secondsToWait();
    if (wait !== undefined) return tooMany(c, wait);
    const parsed = viewsQuerySchema.safeParse(c.req.query());
    if (!parsed.success) return unacceptable(c, parsed.error);
    const { dateFrom, dateTo, limit, offset } = parsed.data;
    const range = traffic.viewsIn({ from: dateFrom, to: dateTo }, now());
    const fault = c.get('pagingFault');
    const window = { limit, offset };
    return c.json<ViewsResponse>(
      fault === undefined ? pageOf(range, window) : faultyPage(fault, range, window),
    );
  };
}
