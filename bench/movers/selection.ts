import { type SimulatedPage } from './simulate.js';

/** How pages are selected for jobs: the most read ones, or those that lost the largest share of their people. */
export type Selection = 'most read' | 'people leaving';

/** Full weeks on which a selection is based; the older half shows the fall. */
export const SELECTION_WEEKS = 16;
/** As in `people_leaving`: smaller pages are left out. */
const WEEKLY_VIEWS_LEAST = 50;

/** The `count` pages that are selected on the first weeks of their history, first choice first. */
export function selected(
  pages: readonly SimulatedPage[],
  selection: Selection,
  count: number,
): SimulatedPage[] {
  const ranked = pages.flatMap((page) => {
    const older = page.views.human.slice(0, SELECTION_WEEKS / 2);
    const newer = page.views.human.slice(SELECTION_WEEKS / 2, SELECTION_WEEKS);
    if (selection === 'most read') return [{ page, rank: median(newer) }];
    const isLarge = sum(older) >= WEEKLY_VIEWS_LEAST * older.length;
    return isLarge ? [{ page, rank: sum(older) / (sum(newer) + 1) }] : [];
  });
  return ranked
    .sort((one, two) => two.rank - one.rank)
    .slice(0, count)
    .map(({ page }) => page);
}

const sum = (views: readonly number[]): number => views.reduce((total, count) => total + count, 0);

const median = (views: readonly number[]): number =>
  [...views].sort((one, two) => one - two).at(views.length / 2) ?? 0;
