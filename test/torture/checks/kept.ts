import type { Books } from '../books.js';

/** A command whose clock is behind dates what it loads before existing data. */
const FURTHEST_BEHIND_MS = 3_600_000;

/**
 * What is in `before` but missing from `after`: the same stores at a later time, or a history and what it was made
 * from.
 */
export function losses(before: Books, after: Books): string[] {
  const attemptOf = ({ workspace }: Books) => workspace[0]?.attempt ?? 0;
  const days = new Map(after.days.map((row) => [row.day, row]));
  const jobs = new Map(after.jobs.map((row) => [row.id, row]));
  return [
    ...(attemptOf(after) < attemptOf(before) ? ['the number of attempts went back'] : []),
    ...before.days.flatMap(({ day, loaded_ms }) => {
      const now = days.get(day);
      if (now === undefined) return [`${day} is gone`];
      const isOlder = (now.loaded_ms ?? 0) < (loaded_ms ?? 0) - FURTHEST_BEHIND_MS;
      return isOlder ? [`${day} is older than it was`] : [];
    }),
    ...before.jobs.flatMap(({ id, remote_id, prompt, pr_link }) => {
      const now = jobs.get(id);
      if (now?.prompt !== prompt) return [`job ${id} is gone`];
      return (remote_id === null || now.remote_id === remote_id) && (pr_link === null || now.pr_link !== null)
        ? []
        : [`job ${id} has lost its ${remote_id === now.remote_id ? 'pull request' : 'id'}`];
    }),
    ...missing(before.transitions, after.transitions, (row) => Object.values(row).join(' '), 'transition'),
    ...missing(before.messages, after.messages, ({ id, prompt }) => `${id} ${prompt}`, 'message'),
    ...missing(before.restatements, after.restatements, ({ restatement }) => restatement, 'restatement'),
    ...missing(before.runs, after.runs, ({ run, step }) => `${run} ${step}`, 'step'),
    ...before.emails.flatMap(({ report, period, recipient, attempts }) => {
      const now = after.emails.find(
        (row) => row.report === report && row.period === period && row.recipient === recipient,
      );
      return now === undefined || now.attempts < attempts
        ? [`${report} ${period} to ${recipient} is gone`]
        : [];
    }),
  ];
}

function missing<Row>(before: Row[], after: Row[], nameOf: (row: Row) => string, what: string) {
  const kept = new Set(after.map(nameOf));
  return before.map(nameOf).flatMap((name) => (kept.has(name) ? [] : [`${what} ${name} is gone`]));
}

/** Whether two have the same days, jobs, messages and sent reports. */
export function differences(one: Books, other: Books): string[] {
  const told = ({ days, jobs, messages, emails, transitions }: Books) => ({
    days: days.map(({ day, state, fingerprint }) => [day, state, fingerprint]),
    ...{ jobs, messages, transitions },
    // Alerts are emailed last, when the history is already written.
    emails: emails.filter(({ report }) => report !== 'alert'),
  });
  const [left, right] = [told(one), told(other)];
  return Object.entries(left).flatMap(([name, rows]) =>
    JSON.stringify(rows) === JSON.stringify(right[name as keyof typeof right]) ? [] : [`${name} differ`],
  );
}
