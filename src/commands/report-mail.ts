import { composeMails, recipientsOf, renderFor } from '../schedule/mailing.js';
import { openHistory } from '../warehouse/history.js';
import type { ExitCode } from './exit-code.js';
import { onlyProject, writeOutput } from './report-output.js';
import { chooseRecipients, type SendOptions } from './report-send.js';
import type { Runtime } from './runtime.js';
import { readWorkspace } from './workspace.js';

export interface WriteOptions extends SendOptions {
  readonly output?: string;
}

/** Writes the mail that the first recipient, or the one asked for, would get. Sends and records nothing. */
export async function writeMail(name: string, options: WriteOptions, runtime: Runtime): Promise<ExitCode> {
  const { settings, projects, historyFile, directory: workspaceDir } = await readWorkspace(options, runtime);
  const project = onlyProject(projects, 'A mail');
  const recipients = chooseRecipients(recipientsOf(settings, name), name, options.to).slice(0, 1);
  const history = await openHistory(historyFile);
  try {
    const place = { settings, workspaceDir, now: runtime.now };
    const rendered = await renderFor(place, history, project, { name, period: options.period });
    for (const { bytes } of await composeMails(settings, project, rendered, recipients, runtime.now()))
      if (options.output === undefined) runtime.output.data(bytes.toString('latin1'));
      else await writeOutput(options.output, bytes, runtime);
    return 0;
  } finally {
    history.close();
  }
}
