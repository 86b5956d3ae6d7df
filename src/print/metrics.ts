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
  const metrics: readonly (readonly [name: string, help: string, samples: Samples])[] = [
    ['needs', 'Problems that need attention: readership status', [[{}, needs.length]]],
    ['days', 'Days of the history by state', projects.flatMap(daysIn)],
    [
      'last_day_timestamp_seconds',
      'Start of the last loaded day (UTC)',
      ofProjects(({ lastDay }) => startOf(lastDay)),
    ],
    [
      'requests_last_hour',
      'Requests for page views in the last hour',
      ofProjects(({ requests }) => requests.usedThisHour),
    ],
    ['requests_due', 'Requests needed to load all days', ofProjects(({ requests }) => requests.left)],
    [
      'step_timestamp_seconds',
      'When a step last began',
      runs.map(({ step, started_at: at }) => [{ step }, seconds(at)]),
    ],
    [
      'step_done',
      'Whether the last run of a step succeeded',
      runs.map(({ step, outcome }) => [{ step }, outcome === 'done' ? 1 : 0]),
    ],
    ['jobs', 'Agent jobs by state', Object.entries(jobs).map(([state, count]) => [{ state }, count])],
    [
      'unconfirmed',
      'Jobs, messages and emails that may or may not have been sent',
      Object.entries({ job: unconfirmedJobs, message: unconfirmedMessages, email: unknownDeliveries }).map(
        ([kind, all]) => [{ kind }, all.length],
      ),
    ],
    ['published_timestamp_seconds', 'When the history was published', [[{}, seconds(publishedAt)]]],
    ['disk_free_bytes', 'Free space where the data is', [[{}, diskFreeBytes]]],
  ];
  return metrics.map(metricText).join('');
}

const metricText = ([name, help, samples]: readonly [string, string, Samples]): string =>
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
