// What is missing is said, and in CI it is a failure: a test that nobody runs finds nothing.

export function missing(parts: Readonly<Record<string, boolean>>): string | undefined {
  const names = Object.keys(parts).filter((name) => !parts[name]);
  if (names.length === 0) return undefined;
  const message = `missing: ${names.join(', ')}`;
  if (process.env.CI) throw new Error(`${message}, and in CI nothing is skipped`);
  return message;
}
