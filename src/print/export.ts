import { type Day, lastEndedDay } from '../day.js';
import { ReadershipError } from '../errors.js';
import { requestsSince2015, requestsToFindFirstDay } from '../export/range.js';
import { DISAGREEMENT_WORDS } from '../export/paging.js';
import type { ExportOutcome } from '../export/export.js';
import type { DayResult } from '../export/load.js';
import { DUE_ORDER, type ExportPlan, type PlannedExport } from '../export/plan.js';
import { dayList, duration, longDay, nextMinute, plainDayRange } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import { indented, MOST_NAMED } from '../format/text.js';
import type { ProjectAudit, ProjectExport } from '../steps/export.js';
import type { ExportCost } from './progress.js';

const nothingToLoad = (name: string, { range }: ExportPlan): string =>
  `${name}: nothing to load: the history begins on ${longDay(range.first)}.`;

/** The results of an export, in one to three lines a project. Many projects without problems share one. */
export function loadedLines(exported: readonly ProjectExport[], cost: ExportCost): string[] {
  const each = exported.map((one) => ({ ...one, lines: projectLines(one, cost) }));
  const others = exported.length > MOST_NAMED ? each.filter(isPlain) : [];
  if (others.length < 2) return each.flatMap(({ lines }) => lines);
  const listed = each.filter((one) => !others.includes(one));
  const results = others.flatMap(({ outcome }) => outcome?.results ?? []);
  const words = loadedWords(results, costOf(others, cost)) ?? 'up to date';
  return [...listed.flatMap(({ lines }) => lines), `${counted(others.length, 'project')}: ${words}`];
}

/** Whether nothing but numbers is to be said about a project. */
const isPlain = ({ outcome, lines }: ProjectExport & { readonly lines: readonly string[] }): boolean =>
  lines.length === 1 && outcome !== undefined && outcome.results.length >= outcome.plan.days.length;

/** The requests of some projects, and the time of all. */
const costOf = (exported: readonly ProjectExport[], { requests, elapsedMs }: ExportCost): string => {
  const sent = exported.reduce((sum, { project: { id } }) => sum + (requests.get(id) ?? 0), 0);
  return `${counted(sent, 'request')}, ${duration(elapsedMs)}`;
};

/** What was loaded; undefined if nothing was. */
function loadedWords(results: readonly DayResult[], cost: string, of = ''): string | undefined {
  const loaded = results.filter((result) => result.outcome !== 'failed');
  const rows = loaded.reduce((sum, result) => sum + result.rows, 0);
  const added = loaded.filter((result) => result.outcome === 'added').length;
  if (added > 0) return `${counted(added, 'new day')}${of}, ${counted(rows, 'row')}, ${cost}`;
  return loaded.length > 0 ? `no new days; ${counted(loaded.length, 'day')} read again` : undefined;
}

function projectLines(exported: ProjectExport, cost: ExportCost): string[] {
  const { outcome } = exported;
  const { name } = exported.project;
  if (outcome === undefined) return [`${name}: nothing to load, because the platform has no views yet.`];
  const { plan, results } = outcome;
  const notes = [plan.range.note, disagreementNote(outcome.disagreement)];
  if (plan.range.first > plan.range.last) return [nothingToLoad(name, plan), ...indented(notes)];
  const range = plainDayRange(plan.range);
  const nothing =
    plan.days.length > 0
      ? `no new days; ${counted(plan.days.length, 'day')} left to load of ${range}`
      : `up to date through ${longDay(plan.range.last)}`;
  return [
    `${name}: ${loadedWords(results, costOf([exported], cost), ` of ${range}`) ?? nothing}`,
    ...indented([...dayNotes(plan, results), ...checkNotes(outcome), ...notes, leftNote(exported)]),
  ];
}

/** A line, or none. */
type Note = string | false | undefined;

const daysThat = (count: number, words: string): Note => count > 0 && `${counted(count, 'day')} ${words}`;

const endedAs = (results: readonly DayResult[], outcome: DayResult['outcome']): number =>
  results.filter((result) => result.outcome === outcome).length;

/** What is not as it should be, and what happens next. */
function dayNotes({ waiting }: ExportPlan, results: readonly DayResult[]): Note[] {
  const doubtful = results.filter(
    (result) => result.outcome !== 'failed' && result.outcome !== 'fewer' && result.state === 'inconsistent',
  );
  return [
    waitingNote(waiting),
    daysThat(endedAs(results, 'restated'), 'had changed on the platform since the last load'),
    forgottenNote(endedAs(results, 'forgotten')),
    fewerNote(endedAs(results, 'fewer')),
    daysThat(doubtful.length, 'did not add up, and will be loaded again'),
    daysThat(endedAs(results, 'failed'), 'failed, and will be loaded again'),
  ];
}

const waitingNote = (waiting: readonly Day[]): Note =>
  daysThat(waiting.length, 'failed or did not add up: will be loaded again later, or now with --reload');

const forgottenNote = (days: number): Note =>
  days > 0 && `the platform no longer has all of ${counted(days, 'day')}; the stored data is kept`;

const fewerNote = (days: number): Note =>
  daysThat(days, 'had fewer views on the platform than before: stored if it still has fewer the next night');

const disagreementNote = (disagreement: ExportOutcome['disagreement']): Note =>
  disagreement && `the platform ${DISAGREEMENT_WORDS[disagreement]}`;

function checkNotes({ check, stopped }: ExportOutcome): Note[] {
  if (check === undefined || check.days === 0) return [];
  const next = stopped === undefined ? ', and were loaded again' : '';
  return [
    daysThat(check.differing.length, `of the last ${check.days} differed from the platform${next}`),
    forgottenNote(check.forgotten.length),
  ];
}

function leftNote({ outcome, left }: ProjectExport): Note {
  const { plan, requests = 0 } = left ?? {};
  if (plan === undefined || plan.days.length === 0) return undefined;
  const stopped = outcome?.stopped;
  const resumeAt = stopped instanceof ReadershipError ? stopped.resumeAt : undefined;
  const next = resumeAt === undefined ? '' : `; resumes on ${nextMinute(resumeAt)}`;
  const about = isSizeKnown(plan) ? 'about' : 'at least';
  return `${counted(plan.days.length, 'day')} left, ${about} ${counted(requests, 'request')}${next}`;
}

/** Whether the size of days is known. Before any day was read, each is assumed to be small. */
const isSizeKnown = ({ alreadyFinal, readToday, days }: ExportPlan): boolean =>
  alreadyFinal + readToday + days.filter(({ due }) => due !== 'missing').length > 1;

/** What an export would load, the requests it needs, and how many the platform accepts, if it taught that. */
export function exportPlanLines(
  { project: { name }, plan, requests }: PlannedExport,
  now: Date,
  perHour: number | undefined,
): string[] {
  if (plan === undefined) {
    const last = lastEndedDay(now);
    return [
      `${name}: nothing is loaded yet, so it is not known how many days there are. The first export finds the first one with at most ${requestsToFindFirstDay(last)} requests, and then loads every day since, newest first.`,
      `  If no day has more than 250 viewed pages, a year takes 365 requests, and a platform with views since 2015, ${thousands(requestsSince2015(last))}.`,
      '  To load less, set history.start, or --from. To see how many requests one of your days takes: readership doctor --url',
    ];
  }
  if (plan.range.first > plan.range.last) return [nothingToLoad(name, plan)];
  const { days, waiting } = plan;
  if (days.length + requests === 0) return [`${name}: up to date through ${longDay(plan.range.last)}`];
  const isKnown = isSizeKnown(plan);
  const more = isKnown ? '' : ': more for days with more than 250 pages, which the first days will show';
  return [
    `${name}: ${counted(days.length, 'day')} to load of ${plainDayRange(plan.range)}`,
    ...indented([
      waitingNote(waiting),
      ...DUE_ORDER.map((due) => dueLine(due, plan)),
      `${isKnown ? 'about' : 'at least'} ${counted(requests, 'request')}${more}`,
      perHour !== undefined &&
        `the platform accepts ${counted(perHour, 'request')} an hour, as learned from a refusal`,
    ]),
  ];
}

const DUE_WORDS: Readonly<Record<(typeof DUE_ORDER)[number], string>> = {
  yesterday: 'yesterday',
  provisional: 'may have changed',
  failed: 'failed before',
  inconsistent: 'did not add up',
  missing: 'never loaded',
  reload: 'to be reloaded',
};

/** The days that are due for one reason, newest first. */
function dueLine(due: (typeof DUE_ORDER)[number], plan: ExportPlan): string | false {
  const days = plan.days.filter((planned) => planned.due === due).map(({ day }) => day);
  return (
    days.length > 0 &&
    `${DUE_WORDS[due].padEnd(16)}  ${counted(days.length, 'day')}: ${dayList(days.toReversed())}`
  );
}

/** The same as JSON. */
export const exportPlanJson = ({ project, plan, requests }: PlannedExport) => ({
  project: project.id,
  range: plan?.range ?? null,
  days: plan?.days ?? [],
  alreadyFinal: plan?.alreadyFinal ?? 0,
  readToday: plan?.readToday ?? 0,
  waiting: plan?.waiting ?? [],
  requests: plan === undefined ? null : requests,
});

/** What an audit of a project found and repaired. */
export function auditLines({ project, audit }: ProjectAudit): string[] {
  const { days, differing, forgotten, refused, repaired, disagreement } = audit;
  if (disagreement === undefined && days + refused.length === 0)
    return [`${project.name}: there are no final days to verify yet.`];
  const isClean = days > 0 && differing.length + forgotten.length === 0;
  const reloaded = repaired?.results ?? [];
  return [
    `${project.name}: ${counted(days, 'final day')} verified${isClean ? ', no differences' : ''}`,
    ...indented([
      disagreementNote(disagreement),
      differing.length > 0 && `differ from the platform: ${dayList(differing)}`,
      forgottenNote(forgotten.length),
      refused.length > 0 && `not compared, because the platform refuses their range: ${dayList(refused)}`,
      reloaded.length > 0 && `${counted(reloaded.length - endedAs(reloaded, 'failed'), 'day')} loaded again`,
      fewerNote(endedAs(reloaded, 'fewer')),
      repaired === undefined && differing.length > 0 && `load them again: readership audit --repair`,
    ]),
  ];
}
