import { agents } from './agents.js';
import { ask } from './ask.js';
import type { Asking, Row } from './asked.js';
import { health, reports } from './health.js';
import { ai, allPages, overview, page, pages } from './views.js';

/** A page of the web app: its address, its name in the navigation, and what its template shows. */
export interface Page {
  readonly path: string;
  readonly title: string;
  readonly isInNavigation: boolean;
  readonly template: string;
  readonly model: (asking: Asking) => Promise<object>;
  /** What the page lists, as a table to take away. */
  readonly csv?: (asking: Asking) => Promise<Row[]>;
}

export const PAGES: readonly Page[] = [
  { path: '/', title: 'Overview', isInNavigation: true, template: 'web/overview', model: overview },
  {
    path: '/pages',
    title: 'Pages',
    isInNavigation: true,
    template: 'web/pages',
    model: pages,
    csv: allPages,
  },
  { path: '/page', title: 'Page', isInNavigation: false, template: 'web/page', model: page },
  { path: '/ai', title: 'AI', isInNavigation: true, template: 'web/ai', model: ai },
  { path: '/agents', title: 'Agents', isInNavigation: true, template: 'web/agents', model: agents },
  { path: '/ask', title: 'Ask', isInNavigation: true, template: 'web/ask', model: ask },
  { path: '/reports', title: 'Reports', isInNavigation: true, template: 'web/reports', model: reports },
  { path: '/health', title: 'Health', isInNavigation: true, template: 'web/health', model: health },
];
