import { join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { ConfigurationError, messageOf } from '../errors.js';
import { readText, writeWhole } from '../files.js';
import { parseYaml } from './problems.js';
import { day, oneLine, pathPattern } from './values.js';

/** Next to the configuration. */
const NOTES_FILE = 'notes.yaml';

const PATTERN = 'not a path or a pattern such as /guides/*, in which * stands for any text';

const noteSchema = z.strictObject({
  date: day,
  text: oneLine.max(200, 'longer than 200 characters'),
  project: oneLine.optional(),
  path: pathPattern
    .max(500, PATTERN)
    .regex(/^\/[^?[\]\\\s]*$/, PATTERN)
    .optional(),
  break: z.boolean().optional(),
});
/** What happened outside on a day, such as a release. With `break`, views are counted differently from then on. */
export type Note = z.output<typeof noteSchema>;

const notesSchema = (projects: readonly string[] | undefined) =>
  z
    .array(
      noteSchema.refine(({ project }) => project === undefined || projects?.includes(project) !== false, {
        path: ['project'],
        error: 'not the id of a project in readership.yaml',
      }),
      'write a list of notes, such as - { date: 2026-06-08, text: New navigation }',
    )
    .max(5000, 'more than 5,000 notes');

export const notesFileIn = (directory: string): string => join(directory, NOTES_FILE);

/**
 * The notes in a file; none if there is no file. Throws a `ConfigurationError` that lists all problems with
 * their lines. `projects` are the ids that notes may name; undefined for any.
 */
export async function readNotes(file: string, projects: readonly string[] | undefined): Promise<Note[]> {
  const text = await readText(file);
  return text === undefined ? [] : parseNotes(text, file, projects);
}

function parseNotes(text: string, file: string, projects: readonly string[] | undefined): Note[] {
  const isEmpty = text.split('\n').every((line) => /^\s*(#|$)/.test(line));
  return parseYaml(isEmpty ? '[]' : text, file, notesSchema(projects));
}

/**
 * Adds a note at the end of the file and leaves the rest as it is. Throws a `ConfigurationError`, with nothing
 * changed, if the file has problems or is not written as a list with one dash per note. Returns the file.
 */
export async function addNote(
  file: string,
  note: Note,
  projects: readonly string[] | undefined,
): Promise<string> {
  const text = (await readText(file)) ?? '';
  const before = parseNotes(text, file, projects);
  const lines = linesOf(note);
  const added = `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${lines}`;
  try {
    if (parseNotes(added, file, projects).length <= before.length)
      throw new ConfigurationError('it is not a list with a dash before each note.');
    writeWhole(file, added, 0o644);
    return file;
  } catch (cause) {
    const words = `The note was not added to ${file}: ${messageOf(cause)}`;
    throw new ConfigurationError(`${words} Add it by hand:\n${lines}`, { cause });
  }
}

/** A note as YAML. */
const linesOf = ({ date, text, project, path, break: isBreak }: Note): string =>
  stringify([{ date, text, project, path, break: isBreak === true || undefined }], { lineWidth: 0 });
