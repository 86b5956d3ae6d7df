import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { ConfigurationError } from '../errors.js';
import { faultOf } from './fault.js';
import { ignoreMissing } from '../files.js';
import { searchedDirs } from '../places.js';

/** A colour that a browser, a mail reader and the drawer of pictures all understand. */
const colour = z.string().regex(/^#(?:[0-9a-f]{6}|[0-9a-f]{8})$/i, 'expected a colour such as #0f766e');
const colours = z.record(z.string().regex(/^[a-z]+(?:-[a-z]+)*$/), colour);
const palette = z.strictObject({ light: colours, dark: colours });

export type Colours = z.infer<typeof colours>;
/** Colours by name, on light and on dark paper. Mails and their pictures are light. */
export type Palette = z.infer<typeof palette>;

/** Reads `templates/palette.yaml`, the workspace's own before the built-in one. */
export async function readPalette(workspaceDir: string | undefined): Promise<Palette> {
  for (const dir of searchedDirs(workspaceDir)) {
    const file = join(dir, 'templates/palette.yaml');
    const text = await readFile(file, 'utf8').catch(ignoreMissing);
    if (text === undefined) continue;
    try {
      return palette.parse(parse(text));
    } catch (cause) {
      throw new ConfigurationError(`${file}: ${faultOf(cause)}`, { cause });
    }
  }
  throw new ConfigurationError('templates/palette.yaml is missing: install Readership again');
}
