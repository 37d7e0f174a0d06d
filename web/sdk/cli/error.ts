/** What its user did or can mend: told as it is, without a stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
