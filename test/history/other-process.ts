import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../dist/warehouse/open.js', import.meta.url));

/** Prints a word when it holds the database, and releases it when its standard input ends. */
const HOLD = `
  const [built, path, command] = process.argv.slice(1);
  const { openWarehouse } = await import(built);
  const history = await openWarehouse(path, { command, now: () => new Date(), maxWaitMs: 30_000 });
  process.stdout.write('held');
  process.stdin.resume().on('end', () => void history.close());`;

/** Another process that holds a live database. */
export async function holdElsewhere(path: string, command: string) {
  if (!existsSync(BUILT)) throw new Error(`${BUILT} is not built: npm run build`);
  const args = ['--input-type=module', '--eval', HOLD, BUILT, path, command];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return {
    pid: child.pid ?? 0,
    letGo: async () => {
      child.stdin.end();
      await ended;
    },
    /** Ends it as a crash would. */
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
