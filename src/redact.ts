/** Replaces every occurrence of the given secrets in a text. */
export type Redact = (text: string) => string;

/** A `Redact` for these values. Works by value, so a secret that a server echoes is caught as well. */
export function redactor(secrets: readonly string[]): Redact {
  const present = secrets.filter((secret) => secret !== '');
  return (text) => present.reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), text);
}
