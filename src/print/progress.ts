import { VIEWS_OPERATION } from '../api/errors.js';
import type { Listener } from '../app/open.js';
import type { ProjectSettings } from '../config/schema.js';
import type { Day } from '../day.js';
import { messageOf } from '../errors.js';
import type { DayResult } from '../export/load.js';
import type { ExportPlan } from '../export/plan.js';
import { duration, nextMinute, plainDayRange } from '../format/days.js';
import { counted, thousands } from '../format/numbers.js';
import { MOST_NAMED } from '../format/text.js';
import type { Job } from '../state/jobs.js';
import type { Output } from '../terminal/output.js';
import { jobLine } from './jobs.js';

const BAR_WIDTH = 24;
const PLAIN_LINE_EVERY_MS = 5_000;

/** The cost of an export: the requests by project id, and the time of all together. */
export interface ExportCost {
  readonly requests: ReadonlyMap<string, number>;
  readonly elapsedMs: number;
}

/**
 * Shows the progress of an export over all projects: a bar on a terminal, occasional lines
 * elsewhere.
 */
export class ExportProgress {
  readonly #requests = new Map<string, number>();
  #startedMs = 0;
  #elapsedMs = 0;
  #lastLineMs = performance.now();
  #days = 0;
  #planned = 0;
  #rows = 0;
  readonly #names: string[] = [];
  /** What became of jobs, by their ids, to be listed at the end; undefined to note each change at once. */
  #jobs: Map<number, Job> | undefined;
  #waitMs = 0;
  /** The failed days by their error without dates. */
  readonly #failed = new Map<string, Day[]>();

  constructor(private readonly output: Output) {}

  /** Notes what a person should know while steps run. */
  get listener(): Listener {
    const { note } = this.output;
    return {
      onWait: waitNotes((until, why) => note(`${why} Waiting until ${nextMinute(until)}.`)),
      onNotice: note,
      onRequest: ({ name }, project) => {
        if (name === VIEWS_OPERATION) this.#requests.set(project, 1 + (this.#requests.get(project) ?? 0));
      },
      onRetry: retryNotes(note),
      onExportPlan: (project, plan) => this.begin(project, plan),
      onDay: (_, result) => this.advance(result),
      onAlertFailed: note,
      onJob: (job) => this.#showJob(job),
      onThenOutput: note,
    };
  }

  /** The cost of the export so far. */
  get cost(): ExportCost {
    return { requests: this.#requests, elapsedMs: this.#elapsedMs };
  }

  /** From now on, jobs are not noted, but returned as they are at last. Says once that active ones are waited for. */
  collectJobs(waitMs: number): ReadonlyMap<number, Job> {
    this.#waitMs = waitMs;
    return (this.#jobs ??= new Map());
  }

  begin(project: ProjectSettings, plan: ExportPlan): void {
    this.end();
    if (this.#names.length === 0) this.#startedMs = this.#lastLineMs = performance.now();
    const name = project.name;
    this.#names.push(name);
    const { days, range } = plan;
    this.#planned += days.length;
    if (range.first > range.last || this.#names.length > MOST_NAMED) return;
    this.output.note(`${name}: ${counted(days.length, 'day')} to load of ${plainDayRange(range)}`);
  }

  advance(result: DayResult): void {
    this.#days++;
    this.#elapsedMs = performance.now() - this.#startedMs;
    if (result.outcome === 'failed') this.#noteFailure(result.day, messageOf(result.error));
    else this.#rows += result.rows;
    if (this.output.isLive) this.output.live(this.#line());
    else if (performance.now() - this.#lastLineMs > PLAIN_LINE_EVERY_MS) {
      this.#lastLineMs = performance.now();
      this.output.note(this.#line());
    }
  }

  end(): void {
    this.output.clearLive();
    for (const [first = '', ...others] of this.#failed.values()) {
      const days = others.sort();
      if (days.length > 0)
        this.output.note(
          `${counted(days.length, 'more day')}, ${days[0] ?? ''} to ${days.at(-1) ?? ''}, were not loaded for the same reason as ${first}`,
        );
    }
    this.#failed.clear();
  }

  #showJob(job: Job): void {
    if (this.#jobs === undefined) return this.output.note(jobLine(job));
    this.#jobs.set(job.id, job);
    if (this.#waitMs === 0 || job.state !== 'active') return;
    this.output.note(`Waiting up to ${duration(this.#waitMs)} for the agents.`);
    this.#waitMs = 0;
  }

  /** Says why a day was not loaded, unless the reason was given for another one. */
  #noteFailure(day: Day, words: string): void {
    const kind = words.replace(/\d{4}-\d\d-\d\d/g, '');
    const days = this.#failed.get(kind);
    days?.push(day);
    if (days !== undefined) return;
    this.#failed.set(kind, [day]);
    this.output.note(`${day} was not loaded: ${words}`);
  }

  #line(): string {
    // The nightly check may load days that are not part of the plan.
    const total = Math.max(this.#planned, this.#days);
    const name = this.#names.length > 1 ? counted(this.#names.length, 'project') : (this.#names[0] ?? '');
    const leftMs = this.#days === 0 ? 0 : (this.#elapsedMs / this.#days) * (total - this.#days);
    const facts = [
      `${thousands(this.#days)}/${thousands(total)} days`,
      `${thousands(this.#rows)} rows`,
      `${thousands([...this.#requests.values()].reduce((sum, count) => sum + count, 0))} requests`,
      `${duration(leftMs)} left`,
    ].join(' · ');
    if (!this.output.isLive) return `${name}: ${facts}`;
    const width = Math.max(0, Math.min(BAR_WIDTH, this.output.noteWidth - name.length - facts.length - 4));
    const filled = total === 0 ? 0 : Math.round((width * this.#days) / total);
    const { cyan, dim } = this.output.noteColors;
    return `${name}  ${cyan('█'.repeat(filled))}${dim('░'.repeat(width - filled))}  ${facts}`;
  }
}

/** Reports a wait once, however many requests wait for the same minute. */
export function waitNotes(report: (until: Date, why: string) => void): NonNullable<Listener['onWait']> {
  let reported = '';
  return (until, why) => {
    const wait = `${why} ${nextMinute(until)}`;
    if (wait === reported) return;
    reported = wait;
    report(until, why);
  };
}

/** Within this time, errors of the same kind count as one problem. */
const SAME_PROBLEM_MS = 60_000;

/** Notes about retries, one a minute for errors of the same kind. */
function retryNotes(note: (text: string) => void): NonNullable<Listener['onRetry']> {
  const notedMs = new Map<string, number>();
  return ({ reason = 'server-error', message }, retriesLeft) => {
    const ms = performance.now();
    if (ms - (notedMs.get(reason) ?? -Infinity) < SAME_PROBLEM_MS) return;
    notedMs.set(reason, ms);
    note(`${message} Retrying (${retriesLeft} left).`);
  };
}
