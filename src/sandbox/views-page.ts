import type { ViewsResponse } from '../api/schema.js';
import type { RangeViews } from './traffic/traffic.js';

/** The rows of a range that one request asks for. */
export interface ViewsWindow {
  readonly limit: number;
  readonly offset: number;
}

/** One page of the export: the range's totals, and its rows from `offset` on. */
export const pageOf = ({ totals, rows }: RangeViews, { limit, offset }: ViewsWindow): ViewsResponse => ({
  totals,
  views: rows.slice(offset, offset + limit),
  hasMore: offset + limit < rows.length,
});
