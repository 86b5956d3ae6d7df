import { spawn } from 'node:child_process';
import type { Runtime } from '../app/workspace.js';

/** Opens a file or an address in the browser. */
export function openInBrowser(what: string, { output }: Pick<Runtime, 'output'>): void {
  const opener =
    process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(opener, [what], { detached: true, stdio: 'ignore' });
  child.on('error', () => {
    output.note(`There is no ${opener} here to open the browser with; open it yourself: ${what}`);
  });
  child.unref();
}
