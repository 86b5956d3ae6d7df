/** The promises that are checked after every command of every trial. */
export const PROPERTIES = {
  history: 'every stored day matches what the platform showed, or is listed as failed or inconsistent',
  jobs: 'no job or message arrives twice, and the state knows them all',
  emails: 'no email arrives twice, and the state matches what arrived',
  budget: 'the hourly request limit is never exceeded, and no request is uncounted',
  file: 'the history can be opened at any time, and it and the state in it were committed',
  records: 'days, jobs, messages, emails and attempts agree with each other, and with the witness',
  kept: 'nothing that was committed is lost',
  named: 'every run and status names what is of unknown outcome',
  ends: 'a command ends as documented: in time, with its exit code and a clear message',
  converges: 'without failures, everything catches up, and an unneeded run changes nothing',
} as const;
export type Property = keyof typeof PROPERTIES;

export interface Violation {
  readonly seed: number;
  readonly property: Property;
  readonly detail: string;
}

/** The result of a trial. */
export interface TrialResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly commands: number;
  readonly killed: number;
  /** Commands whose disk may have been too small. */
  readonly starved: number;
  /** The directory with the data and a log, if a property was violated. */
  readonly evidence: string | undefined;
}
