import type { Day } from '../day.js';
import type { Client, ReadOptions } from './client.js';
import { EndlessWalkError } from './errors/endless-walk-error.js';
import { LIMITS, type ViewsResponse } from './schema.js';

/** Pages of one walk; a site with more than a million pages in a day would pass it. */
const MAX_PAGES = 4_000;

/**
 * The pages of the views export for `dateFrom` up to but not including `dateTo`, in the fewest requests. Throws an
 * `EndlessWalkError` when a page is empty though more are promised, or the walk passes a sane length.
 */
export async function* viewsPages(
  client: Pick<Client, 'views'>,
  range: { readonly dateFrom: Day; readonly dateTo: Day },
  options?: ReadOptions,
): AsyncGenerator<ViewsResponse, void, void> {
  const limit = LIMITS.viewsPage.max;
  for (let page = 0; page < MAX_PAGES; page++) {
    const response = await client.views({ ...range, limit, offset: page * limit }, options);
    yield response;
    if (!response.hasMore) return;
    if (response.views.length === 0)
      throw new EndlessWalkError(
        `page ${page + 1} of the export is empty, yet the server says that more follow`,
      );
  }
  throw new EndlessWalkError(`the export did not end after ${MAX_PAGES} pages of ${limit}`);
}
