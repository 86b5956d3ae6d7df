import type { Books } from '../books.js';

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

/** Contradictions between the tables of one database. */
export function ledgerFaults(books: Books): string[] {
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
    ...repeated(books.transitions.map(({ job, number }) => `transition ${number} of job ${job}`)),
    ...repeated(
      books.deliveries.map(({ report, period, recipient }) => [report, period, recipient].join(' ')),
    ),
  ];
}

export const repeated = (names: readonly string[]): string[] =>
  names.filter((name, index) => names.indexOf(name) !== index).map((name) => `${name} is listed twice`);

function dayFaults(day: Books['days'][number]): string[] {
  if (day.state === null) return [`${day.day} has rows but no entry in day_loads`];
  const isStored = day.loaded_ms !== null;
  const { fact_pages, fact_paths, fact_human, fact_ai, fact_total } = day;
  const { pages, human, ai, total } = isStored ? day : { pages: 0, human: 0, ai: 0, total: 0 };
  const facts = [fact_pages, fact_human, fact_ai, fact_total].join();
  const ledger = [pages, human, ai, total].join();
  return [
    ...(facts === ledger ? [] : [`${day.day} has ${facts} in page_views and ${ledger} in day_loads`]),
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
