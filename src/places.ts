import { fileURLToPath } from 'node:url';

// Both src and dist lie right below the package.
const packageDir = fileURLToPath(new URL('../', import.meta.url));

/** Where reports and templates are looked for: those of the workspace come before the built-in ones. */
export const searchedDirs = (workspaceDir: string | undefined): string[] =>
  workspaceDir === undefined ? [packageDir] : [workspaceDir, packageDir];

/** Whether a report's folder is one of the package. */
export const isBuiltIn = (folder: string): boolean => folder.startsWith(packageDir + 'reports');
