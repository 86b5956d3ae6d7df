import type { Books } from '../books.js';

/** Everything whose outcome is unknown: a name of it, and how commands begin the line about it. */
export const unknownIn = ({ jobs, messages, emails }: Books) =>
  [
    ...jobs.map((job) => ({ ...job, name: `job ${job.id}`, words: `job ${job.id} (` })),
    ...messages.map((message) => ({
      ...message,
      name: `message ${message.id}`,
      words: `message ${message.id} to job ${message.job} may or may not`,
    })),
    ...emails.map((email) => ({
      ...email,
      name: `${email.report} ${email.period} to ${email.recipient}`,
      words: `${email.report} ${email.period}`,
    })),
  ].filter(({ state }) => state === 'unknown');

/** What was of unknown outcome before a command and still is, but is not named in its output. */
export function unnamedIn(output: string, before: Books, after: Books): string[] {
  const lines = output.split('\n').filter((line) => line.includes('may or may not'));
  const still = new Set(unknownIn(after).map(({ name }) => name));
  return unknownIn(before).flatMap(({ name, words, ...row }) =>
    !still.has(name) ||
    lines.some((line) => line.includes(words) && (!('recipient' in row) || line.includes(row.recipient)))
      ? []
      : [name],
  );
}
