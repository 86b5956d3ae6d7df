import { ConfigurationError } from '../errors.js';

/** No day of a report's period is loaded: the wrong period, or a site too young for it. */
export class NothingLoadedError extends ConfigurationError {}

/** A template that cannot be read, parsed or filled; the message names its file. */
export class TemplateError extends ConfigurationError {}
