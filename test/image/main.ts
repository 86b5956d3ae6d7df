/**
 * Runs every step of deploy/Dockerfile without a container engine: in a fresh Debian root from debootstrap, with
 * this machine's Node.js, and then starts the entry point in the result, as its user. Needs root, debootstrap,
 * and a few hundred MB: npm run test:image
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
const place = mkdtempSync(join(tmpdir(), 'readership-image-'));

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status ?? String(error)}`);
}

/** A base root with Node.js and npm, as in the base image. */
function baseRoot(): string {
  const root = join(place, 'base');
  const packages = '--include=ca-certificates,libstdc++6';
  run('debootstrap', ['--variant=minbase', packages, 'bookworm', root, ...process.argv.slice(2)]);
  cpSync(process.execPath, join(root, 'usr/local/bin/node'));
  const npm = dirname(dirname(realpathSync(spawnSync('which', ['npm']).stdout.toString().trim())));
  cpSync(npm, join(root, 'usr/local/lib/npm'), { recursive: true, dereference: true });
  const { HOME = '', NODE_EXTRA_CA_CERTS: authority = '' } = process.env;
  const files = {
    '/etc/resolv.conf': '/etc/resolv.conf',
    [authority]: authority,
    [join(HOME, '.npmrc')]: '/root/.npmrc',
  };
  for (const [from, to] of Object.entries(files))
    if (existsSync(from)) cpSync(from, join(root, to), { dereference: true });
  run('chroot', [root, 'ln', '--symbolic', '/usr/local/lib/npm/bin/npm-cli.js', '/usr/local/bin/npm']);
  const devices = 'mkdir -p /proc /dev && [ -e /dev/null ] || mknod -m 666 /dev/null c 1 3';
  run('chroot', [root, 'sh', '-c', `chmod +x /usr/local/lib/npm/bin/npm-cli.js && ${devices}`]);
  return root;
}

interface Stage {
  readonly root: string;
  directory: string;
  user: string;
  entry: string[];
  readonly env: Record<string, string>;
}

const base = baseRoot();
const stages = new Map<string, Stage>();
let stage: Stage | undefined;
const text = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8').replaceAll(/^#.*\n/gm, '');
for (const line of text.trim().split(/\n+/)) {
  const [, instruction = '', rest = ''] = /^(\w+) +(.*)$/.exec(line) ?? [];
  process.stdout.write(`--- ${line}\n`);
  if (instruction === 'FROM') {
    const name = /AS (\w+)$/.exec(rest)?.[1] ?? 'image';
    const root = join(place, name);
    run('cp', ['--archive', base, root]);
    const own = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' };
    const env = { ...(process.env as Record<string, string>), ...own };
    stage = { root, directory: '/', user: '0:0', entry: [], env };
    stages.set(name, stage);
    continue;
  }
  if (stage === undefined) throw new Error('The Dockerfile does not begin with FROM.');
  const { root } = stage;
  const inside = (path: string): string => join(root, resolve(stage?.directory ?? '/', path));
  switch (instruction) {
    case 'WORKDIR':
      stage.directory = rest;
      mkdirSync(inside('.'), { recursive: true });
      break;
    case 'ENV':
      Object.assign(stage.env, Object.fromEntries([rest.split('=')]));
      break;
    case 'COPY': {
      const words = rest.split(' ');
      const from =
        words[0]?.startsWith('--from=') === true ? stages.get(words.shift()?.slice(7) ?? '')?.root : ROOT;
      const target = words.pop() ?? '';
      if (target.endsWith('/')) mkdirSync(inside(target), { recursive: true });
      for (const source of words) {
        const to = target.endsWith('/') ? join(inside(target), basename(source)) : inside(target);
        run('cp', ['--archive', '--no-target-directory', join(from ?? '', source), to]);
      }
      break;
    }
    case 'RUN':
      run('chroot', [root, 'sh', '-ec', `cd ${stage.directory} && ${rest}`], stage.env);
      break;
    case 'USER':
      stage.user = rest;
      break;
    case 'ENTRYPOINT':
      stage.entry = JSON.parse(rest) as string[];
      break;
    // Only an engine uses these.
    case 'VOLUME':
    case 'HEALTHCHECK':
    case 'CMD':
      break;
    default:
      throw new Error(`This test cannot run ${instruction}.`);
  }
}
if (stage === undefined) throw new Error('The Dockerfile is empty.');
const { root, directory, user, entry, env } = stage;
for (const args of ['--version', 'run --sandbox', 'status --sandbox']) {
  const command = `cd ${directory} && exec ${entry.join(' ')} ${args}`;
  run('chroot', [`--userspec=${user}`, root, 'sh', '-c', command], { PATH: env['PATH'], HOME: '/tmp' });
}
rmSync(place, { recursive: true, force: true });
process.stdout.write('Every step ran, and the entry point works as its user.\n');
