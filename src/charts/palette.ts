import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseYaml } from '../config/problems.js';
import { ownOrBuiltIn, packageFile } from '../files.js';

/** A color format that browsers, email clients and the picture renderer all support. */
const color = z.string().regex(/^#(?:[0-9a-f]{6}|[0-9a-f]{8})$/i, 'expected a color such as #0f766e');
const colors = z.record(z.string().regex(/^[a-z]+(?:-[a-z]+)*$/), color);
const palette = z.strictObject({ light: colors, dark: colors });

export type ChartColors = z.infer<typeof colors>;
/** Colors by name, for light and dark backgrounds. */
export type Palette = z.infer<typeof palette>;

const FILE = 'templates/palette.yaml';

/** The colors of the workspace's `templates/palette.yaml`; those that it does not name are the built-in ones. */
export async function readPalette(workspaceDir: string | undefined): Promise<Palette> {
  const [builtIn, own] = await Promise.all([read(packageFile(FILE)), read(ownOrBuiltIn(FILE, workspaceDir))]);
  return { light: { ...builtIn.light, ...own.light }, dark: { ...builtIn.dark, ...own.dark } };
}

const read = async (path: string): Promise<Palette> =>
  parseYaml(await readFile(path, 'utf8'), { path, schema: palette, unknownKey: 'expected light and dark' });
