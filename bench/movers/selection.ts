import { type SimulatedPage } from './simulate.js';

/** Full weeks before a change. Pages are selected by the later half of them. */
export const WEEKS_BEFORE = 16;

/** The `count` pages that people read most in those weeks, the most read first. */
export function mostRead(pages: readonly SimulatedPage[], count: number): SimulatedPage[] {
  return pages
    .map((page) => ({ page, typical: median(page.views.human.slice(WEEKS_BEFORE / 2, WEEKS_BEFORE)) }))
    .sort((one, two) => two.typical - one.typical)
    .slice(0, count)
    .map(({ page }) => page);
}

const median = (views: readonly number[]): number =>
  [...views].sort((one, two) => one - two).at(views.length / 2) ?? 0;
