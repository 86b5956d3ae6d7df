import { endOfMinute } from 'date-fns';
import { z } from 'zod';
import { counted } from '../format/numbers.js';
import { type Fact, projectFacts } from '../print/project-facts.js';
import { needsOf, operationsFacts } from '../print/status.js';
import { readStatus } from '../service/status.js';
import { readDays } from '../steps/history.js';
import type { Row } from '../history/duckdb.js';
import { readRecentRuns } from '../state/runs.js';
import type { SiteRequest } from './request.js';

/**
 * The days by state, the requests used, the last runs, and what needs attention, as in `readership
 * status`.
 */
export async function health(request: SiteRequest): Promise<object> {
  const { reader, rows, workspace, now, range } = request;
  // To the end of the minute, so that answers are kept for as long, and no run is left out.
  const { state } = reader;
  const until = endOfMinute(now);
  const ids = workspace.projects.map(({ id }) => id);
  const stored = await readDays(reader, ids, until);
  const status = await readStatus({ days: stored, state }, workspace, until);
  const { projects, operations } = status;
  const [days, findings] = await Promise.all([
    range === undefined ? [] : rows('calendar', { ...range.extent }),
    rows('findings'),
  ]);
  const shownDays = days.map(withWords('state'));
  const statuses = [
    ...projects.map((one) => factsOf(one.name, projectFacts(one, now), ` --project ${one.project}`)),
    factsOf('Operations', operationsFacts(operations, now)),
  ];
  return {
    needs: needsOf(status, workspace, now),
    statuses,
    isWell: statuses.every(({ differing }) => differing.length === 0),
    operations,
    findings: findings.map(withWords('finding')),
    runs: readRecentRuns(state),
    timezone: workspace.settings.schedule.timezone,
    days: shownDays,
    calendarSaid: saidOf(shownDays),
  };
}

/** Facts, of which `differing` are not as they should be, each with the command that changes it. */
const factsOf = (name: string, rows: readonly Fact[], about = '') => ({
  name,
  rows,
  differing: rows.flatMap(({ command, ...fact }) =>
    command === undefined ? [] : { ...fact, command: command + about },
  ),
});

/** The states of days, and findings about them, in words; the others are words themselves. */
const WORDS: Readonly<Record<string, string>> = {
  final: 'settled',
  provisional: 'may still change',
  restated: 'changed later',
  missing: 'not loaded',
};

const withWords = (column: string) => (row: Row) => {
  const name = z.string().parse(row[column]);
  return { ...row, words: WORDS[name] ?? name };
};

function saidOf(days: readonly { readonly words: string }[]): string {
  const all = days.map(({ words }) => words);
  const said = [...new Set(all)].map((state) => `${all.filter((one) => one === state).length} ${state}`);
  return `${counted(days.length, 'day')}: ${said.join(', ')}`;
}
