import { expect, it } from 'vitest';
import { openFrame } from '../../src/web/frame.js';

it('a page repeats in the commands that it advises how this server was started', async () => {
  const workspace = { workspaceDir: undefined, projects: [], invocation: { sandbox: true } };
  const frame = await openFrame(workspace, [], { signOut: false });
  const words = 'Nothing is loaded yet: readership export';
  expect(frame.page('problem', 'Not found', new URL('http://page/x'), { words })).toContain(
    `${words} --sandbox`,
  );
});
