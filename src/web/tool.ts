import { z } from 'zod';
import { unknownPage } from '../agents/plan.js';
import type { ProjectSettings } from '../config/schema.js';
import { ConfigurationError, StorageError } from '../errors.js';
import type { Asker } from './questions.js';
import { questionOf, type Range } from './request.js';
import type { Sources } from './sources.js';

/** Who calls a tool, and what it answers from. */
export interface Call extends Asker {
  readonly sources: Sources;
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
  return { input, output: z.object(outputs), answer: (given, call) => answer(input.parse(given), call) };
};

type Question = Awaited<ReturnType<typeof questionOf>>;
/** What is asked about the days of a project. */
export type DaysQuestion = Question & { readonly range: Range };

const project = z.string().optional().describe('project id; required if there are several');

/**
 * A tool about the days of a project. It is asked as a page of the web app would be whose address has the parameters
 * that `inAddress` makes of its input, and says which days its answer is about.
 */
export function projectTool<Input extends z.ZodRawShape>(
  inputs: Input,
  outputs: z.ZodRawShape,
  answer: (question: DaysQuestion, input: z.output<z.ZodObject<Input>>, sources: Sources) => Promise<object>,
  inAddress: (input: z.output<z.ZodObject<Input>>) => object = (input) => input,
): Tool {
  const own = z.object(inputs);
  const answered: Tool['answer'] = async (given, { sources, ...asker }) => {
    const input = own.parse(given);
    const { id, name } = projectNamed(z.object({ project }).parse(given).project, sources.workspace.projects);
    const parameters = Object.entries({ ...inAddress(input), project: id }).flatMap(([key, value = []]) =>
      [value].flat().map((one): [string, string] => [key, one]),
    );
    return sources.histories.of(id).with(asker, async (reader) => {
      const question = await questionOf(new URLSearchParams(parameters), reader, sources);
      const { range } = question;
      if (range === undefined) throw new StorageError(`Nothing is loaded for ${name} yet.`);
      const { first: from, last: to, shift: days_earlier } = range;
      return { from, to, days_earlier, ...(await answer({ ...question, range }, input, sources)) };
    });
  };
  return { input: own.extend({ project }), output: z.object(outputs), answer: answered };
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

export const text = z.string();
export const textOrNull = text.nullable();
export const list = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.object(fields));
export const pathOrUrl = z.string().max(4_000).describe('a path such as /quickstart, or the full URL');
