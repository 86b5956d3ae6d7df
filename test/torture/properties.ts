/** What is promised, and looked at after every command of every trial. */
export const PROPERTIES = {
  history: 'every stored day is as the platform showed it, or listed as failed or inconsistent',
  jobs: 'no job or message arrives twice, and none is unknown to the ledger',
  mails: 'no mail arrives twice, and deliveries say what arrived',
  budget: 'never more requests in an hour than allowed, and none uncounted',
  lost: 'a kill loses at most the requests of one day, or a tenth of the hourly limit',
  published: 'the published file opens at any moment, and is a committed state',
  ledgers: 'the ledgers agree with the facts and with each other',
  kept: 'nothing that was committed is lost',
  ends: 'a command ends as documented: in time, with its code, in plain words',
  converges: 'without faults all is caught up with, and a needless run changes nothing',
} as const;
export type Property = keyof typeof PROPERTIES;

export interface Violation {
  readonly seed: number;
  readonly property: Property;
  readonly detail: string;
}

/** What became of a trial. */
export interface TrialResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly commands: number;
  readonly killed: number;
  /** Commands that were given less of a disk than they may have needed. */
  readonly starved: number;
  /** The directory with the data and a log, when there is something to look at. */
  readonly evidence: string | undefined;
}
