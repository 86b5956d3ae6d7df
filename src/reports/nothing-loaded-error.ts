import { ConfigurationError } from '../errors.js';

/** A report was asked for of a period of which no day is loaded: a wrong period, or a site too young for it. */
export class NothingLoadedError extends ConfigurationError {}
