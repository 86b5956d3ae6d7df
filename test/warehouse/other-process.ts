import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../dist/warehouse/open.js', import.meta.url));

/** Prints a word when it holds the database, and releases it when its standard input ends. */
const HOLD = `
  const [built, path, command] = process.argv.slice(1);
  const { openWarehouse } = await import(built);
  const warehouse = await openWarehouse(path, { command, now: () => new Date(), maxWaitMs: 30_000 });
  process.stdout.write('held');
  process.stdin.resume().on('end', () => void warehouse.close());`;

/** Another process that holds a live database. */
export interface Holder {
  readonly pid: number;
  letGo(): Promise<void>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
}

export async function holdElsewhere(path: string, command: string): Promise<Holder> {
  if (!existsSync(BUILT)) throw new Error(`${BUILT} is not built: npm run build`);
  const child: ChildProcess = spawn(
    process.execPath,
    ['--input-type=module', '--eval', HOLD, BUILT, path, command],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const ended = once(child, 'exit');
  if (child.stdout === null || child.pid === undefined) throw new Error('not started');
  await once(child.stdout, 'data');
  return {
    pid: child.pid,
    letGo: async () => {
      child.stdin?.end();
      await ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
