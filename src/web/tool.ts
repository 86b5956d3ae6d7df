import { z } from 'zod';
import { unknownPage } from '../agents/ranking.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, StorageError } from '../errors.js';
import { thousands } from '../format/numbers.js';
import type { QueryProcesses } from '../sql/query-processes.js';
import type { Asker } from './history.js';
import type { Range } from './range.js';
import { questionOf, type Sources } from './request.js';

/** Who calls a tool, and what it answers from. */
export interface Call {
  readonly asker: Asker;
  readonly sources: Sources;
  readonly queries: QueryProcesses;
}

export interface Tool {
  readonly input: z.ZodObject;
  /** What an answer has beyond this is left out. */
  readonly output: z.ZodObject;
  readonly answer: (input: unknown, call: Call) => Promise<object>;
}

export const tool = <Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (input: z.output<z.ZodObject<Input>>, call: Call) => Promise<object>,
): Tool => {
  const input = z.object(inputs);
  return { input, output: withNote(outputs), answer: (given, call) => answer(input.parse(given), call) };
};

const withNote = (outputs: z.ZodRawShape) =>
  z.object({
    ...outputs,
    note: z.string().optional().describe('what was cut, or what to know of the answer'),
  });

/** What is asked about the days of a project. */
export type DaysQuestion = Awaited<ReturnType<typeof questionOf>> & { readonly range: Range };

const project = z.string().optional().describe('project id; required if there are several');

/**
 * A tool about the days of a project, by default of thirteen weeks. It is asked as a page of the web app would be
 * whose address has its input as parameters, and says which days its answer is about.
 */
export function projectTool<Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (question: DaysQuestion, input: z.output<z.ZodObject<Input>>, sources: Sources) => Promise<object>,
): Tool {
  const own = z.object(inputs);
  const answered: Tool['answer'] = async (given, { sources, asker }) => {
    const input = own.parse(given);
    const { id, name } = projectNamed(z.object({ project }).parse(given).project, sources.workspace.projects);
    const parameters = z.record(z.string(), z.coerce.string()).parse({ range: '13w', ...input, project: id });
    return sources.history.with(asker, async (reader) => {
      const question = await questionOf(new URLSearchParams(parameters), reader, sources);
      const { range } = question;
      if (range === undefined) throw new StorageError(`Nothing is loaded for ${name} yet.`);
      const { first: from, last: to, compared } = range;
      const { first: compared_from, last: compared_to } = compared.before ?? { first: null, last: null };
      return {
        from,
        to,
        compared_from,
        compared_to,
        ...(await answer({ ...question, range }, input, sources)),
      };
    });
  };
  return { input: own.extend({ project }), output: withNote(outputs), answer: answered };
}

/** The project with this id, or the only one. Throws a `ConfigurationError`. */
function projectNamed(id: string | undefined, projects: readonly ProjectSettings[]): ProjectSettings {
  const found =
    id === undefined && projects.length === 1 ? projects[0] : projects.find((one) => one.id === id);
  if (found !== undefined) return found;
  throw new ConfigurationError(`Name the project: ${projects.map((one) => one.id).join(', ')}.`);
}

/** The path that is asked about. Throws a `StorageError` if the history has no such page. */
export async function knownPage({ reader, query: { path }, project }: DaysQuestion): Promise<string> {
  const unknown = await unknownPage(reader, project.id, path);
  if (unknown !== undefined) throw new StorageError(`${path}: ${unknown}`);
  return path;
}

/** About 25,000 tokens, with the copy as text that clients without structured content need. */
export const MAX_CHARACTERS = 38_000;

/** The answer with its longest lists and texts cut until it fits, and with a note that says so. */
export function fitted(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...answer };
  const notes = typeof answer['note'] === 'string' ? [answer['note']] : [];
  const room = MAX_CHARACTERS - 2_000;
  for (let size = sizeOf(shown); size > room; size = sizeOf(shown)) {
    const [name, value] = Object.entries(shown).reduce((one, other) =>
      sizeOf(other[1]) > sizeOf(one[1]) ? other : one,
    );
    const most = Math.max(0, sizeOf(value) - (size - room));
    const all = z.union([z.string(), z.array(z.unknown())]).parse(value);
    const kept = typeof all === 'string' ? wholeLines(all, most / 2) : startWithin(all, most);
    shown[name] = kept;
    const counts = `${thousands(kept.length)} of ${thousands(all.length)}`;
    notes.push(
      `${name}: ${counts} ${typeof all === 'string' ? 'characters' : 'rows'}; ask for less at a time.`,
    );
  }
  return notes.length === 0 ? shown : { ...shown, note: notes.join(' ') };
}

const wholeLines = (text: string, most: number): string =>
  text.slice(0, text.lastIndexOf('\n', most) + 1) || text.slice(0, most);

const sizeOf = (value: unknown): number => JSON.stringify({ value }).length;

/** As many of the first values as have at most this many characters as JSON. */
function startWithin(values: readonly unknown[], most: number): unknown[] {
  let size = 2;
  const end = values.findIndex((value) => (size += sizeOf(value) + 1) > most);
  return values.slice(0, end === -1 ? values.length : end);
}
