import type { ViewsResponse } from '../../api/schema.js';
import { pageOf, type ViewsWindow } from '../views-page.js';
import type { RangeViews } from '../traffic/traffic.js';
import type { FaultOf, PagingFault } from './schema.js';

function endless(
  range: RangeViews,
  window: ViewsWindow,
  beyond: FaultOf<'endless'>['beyond'],
): ViewsResponse {
  const lastOffset = Math.floor(Math.max(0, range.rows.length - 1) / window.limit) * window.limit;
  const offset = beyond === 'last-page' ? Math.min(window.offset, lastOffset) : window.offset;
  return { ...pageOf(range, { ...window, offset }), hasMore: true };
}

/** One more human view, on the page's first row and in the totals. */
function countsMoved(page: ViewsResponse): ViewsResponse {
  const more = <T extends { human: number; total: number }>(counts: T): T => ({
    ...counts,
    human: counts.human + 1,
    total: counts.total + 1,
  });
  return {
    ...page,
    totals: more(page.totals),
    views: page.views.map((row, at) => (at === 0 ? more(row) : row)),
  };
}

/** The row before the page slips into it and pushes the last one of the range out of sight. */
function orderMoved(range: RangeViews, window: ViewsWindow): ViewsResponse {
  const moved = [...range.rows];
  const repeated = moved[window.offset - 1];
  if (repeated === undefined || window.offset >= moved.length) return pageOf(range, window);
  moved.splice(window.offset, 0, repeated);
  moved.pop();
  return pageOf({ ...range, rows: moved }, window);
}

/** A page of views as a server answers whose rows move, or whose paging never ends. */
export function faultyPage(fault: PagingFault, range: RangeViews, window: ViewsWindow): ViewsResponse {
  switch (fault.kind) {
    case 'endless':
      return endless(range, window, fault.beyond);
    case 'counts-move':
      return window.offset === 0 ? pageOf(range, window) : countsMoved(pageOf(range, window));
    case 'order-moves':
      return orderMoved(range, window);
  }
}
