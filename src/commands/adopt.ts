import { MAX_LOCK_WAIT_MS, withWorker } from '../app/open.js';
import { savedState } from '../app/restore.js';
import { readWorkspace } from '../app/workspace.js';
import { adopt as adoptState } from '../state/witness.js';
import { placeWords } from '../state/workspace.js';
import { workspaceCommand } from './command.js';

export const adopt = workspaceCommand('adopt', {
  summary: 'send from this copy of a workspace from now on',
  description:
    'A workspace sends jobs, messages, emails and posts from one machine and one data directory. A copy anywhere else exports and reports, and sends nothing, until this command makes it the one that sends. Stop the other copy first: neither knows about the other, so both would send. If the state here is older than what was sent, this says how much is missing from it, and the workspace sends again.',
  examples: `
  readership adopt       after moving it, or restoring it on a new machine`,
  environment: `Environment:
  READERSHIP_MACHINE     names this machine where its id changes: containers, CI`,
  run: async (options, runtime) => {
    const workspace = await readWorkspace(options, runtime, 'optional');
    const { witness } = workspace;
    const hold = { command: 'adopt', maxWaitMs: MAX_LOCK_WAIT_MS };
    await withWorker(workspace, runtime, hold, async ({ state, worker, here, recovered }) => {
      const carried = await savedState(workspace);
      const missing = await adoptState({ state, worker, witness, carried }, here);
      if (recovered !== undefined) runtime.output.data(recovered);
      runtime.output.data(`This workspace now sends from ${placeWords(here)}.`);
      if (missing === undefined) return;
      const { first, last } = missing;
      const which = first === last ? `Attempt ${first}` : `Attempts ${first} to ${last}`;
      runtime.output.data(
        `${which} to send something: unknown. No state has a record of what was sent, or whether it arrived. ` +
          'Check the pull requests and emails since the state was saved, and skip pages that have an agent job already: readership improve --skip PAGE',
      );
    });
    return 0;
  },
});
