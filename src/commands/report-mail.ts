import { NOBODY } from '../mail-address.js';
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

/**
 * Writes the mail that the first recipient, or the one asked for, would get. Sends and records nothing, so it needs
 * neither recipients nor a sender.
 */
export async function writeMail(name: string, options: WriteOptions, runtime: Runtime): Promise<ExitCode> {
  const { settings, projects, historyFile, directory: workspaceDir } = await readWorkspace(options, runtime);
  const project = onlyProject(projects, 'A mail');
  const configured = recipientsOf(settings, name);
  const mail = settings.mail ?? { from: NOBODY };
  const isPreview = configured.length === 0 && options.to === undefined;
  const recipients = isPreview
    ? [mail.from.address]
    : chooseRecipients(configured, name, options.to).slice(0, 1);
  const history = await openHistory(historyFile);
  try {
    const place = { settings, workspaceDir, now: runtime.now };
    const rendered = await renderFor(place, history, project, { name, period: options.period });
    for (const { bytes } of await composeMails(
      { ...settings, mail },
      project,
      rendered,
      recipients,
      runtime.now(),
    ))
      if (options.output === undefined) runtime.output.data(bytes.toString('latin1'));
      else await writeOutput(options.output, bytes, runtime);
    if (isPreview)
      runtime.output.note(
        `Nobody is to get ${name} yet, so this mail is addressed to ${mail.from.address}${settings.mail === undefined ? ', and from there: mail.from is not set' : ''}.`,
      );
    return 0;
  } finally {
    history.close();
  }
}
