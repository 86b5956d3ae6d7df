import type { Books, StateBooks } from '../books.js';

/** The states that may follow a state; each starts with `null`. Written by hand from the documentation. */
type Following = ReadonlyMap<string | null, readonly string[]>;
const OF_JOBS: Following = new Map([
  [null, ['planned']],
  ['planned', ['sending']],
  ['sending', ['active', 'completed', 'failed', 'archived', 'planned', 'unknown', 'refused']],
  ['active', ['completed', 'failed', 'archived']],
  ['unknown', ['active', 'planned']],
  ...['completed', 'failed', 'archived'].map((end): [string, string[]] => [end, ['active']]),
]);
const OF_MESSAGES: Following = new Map([
  [null, ['planned']],
  ['planned', ['sending']],
  ['sending', ['sent', 'planned', 'unknown', 'refused']],
  ['unknown', ['sent', 'planned']],
]);

/** Contradictions between the tables. */
export function recordFaults(books: Books): string[] {
  const ofJob = (id: number) =>
    books.transitions.filter(({ job, message }) => job === id && message === null);
  const ofMessage = (id: number) => books.transitions.filter(({ message }) => message === id);
  return [
    ...books.days.flatMap(dayFaults),
    ...books.jobs.flatMap(({ id, state }) => chainFaults(`job ${id}`, state, ofJob(id), OF_JOBS)),
    ...books.messages.flatMap(({ id, state }) =>
      chainFaults(`message ${id}`, state, ofMessage(id), OF_MESSAGES),
    ),
    ...repeated(books.jobs.map(({ id }) => `job ${id}`)),
    ...repeated(books.messages.map(({ id }) => `message ${id}`)),
    ...repeated(books.jobs.flatMap(({ remote_id }) => remote_id ?? [])),
    ...repeated(books.days.map(({ day }) => day)),
    ...repeated(books.emails.map(({ report, period, recipient }) => [report, period, recipient].join(' '))),
  ];
}

/** What the witness says: see `witnessOf`. */
export interface Witness {
  readonly workspace: string;
  readonly attempt: number;
}

/**
 * Contradictions between the numbers of attempts: each thing that is sent has one of its own, which the witness knew
 * before.
 */
export function attemptFaults(books: StateBooks, witness: Witness | undefined): string[] {
  const [{ id, attempt } = { id: '', attempt: 0 }] = books.workspace;
  const rows = [
    ...books.jobs.map((job) => ({ what: `job ${job.id}`, ...job })),
    ...books.messages.map((message) => ({ what: `message ${message.id}`, ...message })),
    ...books.emails.map((email) => ({
      what: `${email.report} ${email.period} to ${email.recipient}`,
      ...email,
    })),
  ];
  const known = rows.flatMap((row) => row.attempt ?? []);
  // The process may have been killed before it wrote the witness, and what was planned again was not sent.
  const hasLeft = ({ state }: { readonly state: string }) =>
    !['planned', 'sending', 'unknown', 'waiting'].includes(state);
  return [
    ...repeated(known.map((number) => `attempt ${number}`)),
    ...(Math.max(0, ...known) > attempt
      ? [`the workspace knows ${attempt} attempts, but there are more`]
      : []),
    ...(witness === undefined || witness.workspace === id ? [] : ['the witness has another id']),
    ...(witness === undefined || witness.attempt <= attempt ? [] : ['the witness is ahead of the state']),
    ...rows
      .filter((row) => witness !== undefined && hasLeft(row) && (row.attempt ?? 0) > witness.attempt)
      .map(({ what }) => `the witness does not know of the attempt of ${what}`),
  ];
}

export const repeated = (names: readonly string[]): string[] =>
  names.filter((name, index) => names.indexOf(name) !== index).map((name) => `${name} is listed twice`);

function dayFaults(day: Books['days'][number]): string[] {
  if (day.state === null) return [`${day.day} has rows but no entry in days`];
  const isStored = day.loaded_ms !== null;
  const { fact_pages, fact_paths, fact_human, fact_ai, fact_total } = day;
  const { pages, human, ai, total } = isStored ? day : { pages: 0, human: 0, ai: 0, total: 0 };
  const facts = [fact_pages, fact_human, fact_ai, fact_total].join();
  const recorded = [pages, human, ai, total].join();
  return [
    ...(facts === recorded ? [] : [`${day.day} has ${facts} in page_views and ${recorded} in days`]),
    ...(fact_paths === fact_pages ? [] : [`${day.day} names a path twice`]),
    ...(isStored || day.state === 'failed' ? [] : [`${day.day} is ${day.state} but was never loaded`]),
  ];
}

function chainFaults(name: string, state: string, chain: Books['transitions'], allowed: Following) {
  const faults: string[] = [];
  let at: string | null = null;
  for (const { from_state, to_state } of chain) {
    if (from_state !== at)
      faults.push(`${name} continued from ${from_state ?? 'nothing'}, although it was ${at ?? 'nothing'}`);
    if (allowed.get(from_state)?.includes(to_state) !== true)
      faults.push(`${name} went from ${from_state ?? 'nothing'} to ${to_state}`);
    at = to_state;
  }
  return at === state
    ? faults
    : [...faults, `${name} is ${state}, but its last transition says ${at ?? 'nothing'}`];
}
