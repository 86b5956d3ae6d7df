import { type Day, startOfDay } from '../day.js';
import type { OperationsStatus, ProjectStatus } from '../service/status.js';

type Labels = Readonly<Record<string, string>>;
type Samples = readonly (readonly [labels: Labels, value: number])[];

/** The status as metrics in Prometheus' text format. Names end with their units. */
export function metricsText(
  projects: readonly ProjectStatus[],
  operations: OperationsStatus,
  needs: readonly string[],
): string {
  const { publishedAt, diskFreeBytes, runs, jobs } = operations;
  const { unconfirmedJobs, unconfirmedMessages, unknownDeliveries } = operations;
  const ofProjects = (value: (project: ProjectStatus) => number | undefined): Samples =>
    projects.flatMap((status) => {
      const known = value(status);
      return known === undefined ? [] : [[{ project: status.project }, known] as const];
    });
  const seconds = (at: Date): number => at.getTime() / 1000;
  const daysIn = ({ project, final, ...status }: ProjectStatus): Samples => [
    [{ project, state: 'final' }, final],
    ...(['provisional', 'inconsistent', 'failed', 'gaps'] as const).map(
      (state) => [{ project, state: state === 'gaps' ? 'missing' : state }, status[state].length] as const,
    ),
  ];
  const startOf = (day: Day | null) => (day === null ? undefined : seconds(startOfDay(day)));
  return [
    metric('needs', 'Problems that need a person: readership status', [[{}, needs.length]]),
    metric('days', 'Days of the history by state', projects.flatMap(daysIn)),
    metric(
      'last_day_timestamp_seconds',
      'Start of the last loaded day (UTC)',
      ofProjects(({ lastDay }) => startOf(lastDay)),
    ),
    metric(
      'requests_last_hour',
      'Requests for page views in the last hour',
      ofProjects(({ requests }) => requests.usedThisHour),
    ),
    metric(
      'requests_due',
      'Requests that loading all days still takes',
      ofProjects(({ requests }) => requests.left),
    ),
    metric(
      'step_timestamp_seconds',
      'When a step last began',
      runs.map(({ step, started_at: at }) => [{ step }, seconds(at)]),
    ),
    metric(
      'step_done',
      'Whether its last run was done',
      runs.map(({ step, outcome }) => [{ step }, outcome === 'done' ? 1 : 0]),
    ),
    metric(
      'jobs',
      'Agent jobs by state',
      Object.entries(jobs).map(([state, count]) => [{ state }, count]),
    ),
    metric('unconfirmed', 'What may or may not have been sent', [
      [{ kind: 'job' }, unconfirmedJobs.length],
      [{ kind: 'message' }, unconfirmedMessages.length],
      [{ kind: 'email' }, unknownDeliveries.length],
    ]),
    metric('published_timestamp_seconds', 'When the history was published', [[{}, seconds(publishedAt)]]),
    metric('disk_free_bytes', 'Free space where the data is', [[{}, diskFreeBytes]]),
  ].join('');
}

const metric = (name: string, help: string, samples: Samples): string =>
  [
    `# HELP readership_${name} ${help}`,
    `# TYPE readership_${name} gauge`,
    ...samples.map(([labels, value]) => `readership_${name}${inBraces(labels)} ${value}`),
    '',
  ].join('\n');

/** JSON escapes backslashes, quotes and line feeds as Prometheus does. */
const inBraces = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
};
