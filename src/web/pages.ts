import { agents } from './agents.js';
import { ask } from './ask.js';
import type { Asking, Row } from './asked.js';
import { health, reports } from './health.js';
import { ai, allPages, overview, page, pages } from './views.js';

/** A page of the web app. Its template is named for its title. */
export interface Page {
  readonly path: string;
  readonly title: string;
  /** What its template shows. */
  readonly model: (asking: Asking) => Promise<object>;
  /** What it lists, as a table to take away. */
  readonly csv?: (asking: Asking) => Promise<Row[]>;
}

/** A page among all, which the navigation does not name. */
const PAGE: Page = { path: '/page', title: 'Page', model: page };

export const NAVIGATION: readonly Page[] = [
  { path: '/', title: 'Overview', model: overview },
  { path: '/pages', title: 'Pages', model: pages, csv: allPages },
  { path: '/ai', title: 'AI', model: ai },
  { path: '/agents', title: 'Agents', model: agents },
  { path: '/ask', title: 'Ask', model: ask },
  { path: '/reports', title: 'Reports', model: reports },
  { path: '/health', title: 'Health', model: health },
];

export const PAGES: readonly Page[] = [...NAVIGATION, PAGE];
