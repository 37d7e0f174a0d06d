// What the devtools show may end in a screenshot or a bug report, so credentials never get as far as their memory.

const hidden = '•••';
/** Longer than any frame that people read. What is longer is not parsed, and so not shown. */
const most = 65_536;
const shown = 4_000;

const secretName = /token|secret|passw|credential|authorization|cookie|api[-_]?key|private[-_]?key/i;
/** JSON web tokens, wherever they stand, and what follows a scheme of authorization. */
const tokens = /\beyJ[\w-]+\.[\w-]+\.[\w-]*|\b(?:Bearer|Basic)\s+\S+/gi;
/** The payload of Secrets and ConfigMaps, and the annotation that has a whole object in it. */
const payload = new Set(['data', 'stringData', 'binaryData', 'kubectl.kubernetes.io/last-applied-configuration']);

/** The text without what looks like a token, nor any of those that are known to be one. */
export function redactText(text: string, known: Iterable<string>): string {
  let clean = text;
  for (const token of known) clean = clean.replaceAll(token, hidden);
  return clean.replace(tokens, hidden);
}

/** A frame's data, bounded, without credentials and the payload of Secrets and ConfigMaps. */
export function redactData(data: string, known: Iterable<string>): string {
  if (data.length > most) return `(${data.length} characters, not shown)`;
  let clean: unknown;
  try {
    clean = walk(JSON.parse(data), [...known]);
  } catch {
    return '(not JSON, not shown)';
  }
  const text = JSON.stringify(clean);
  return text.length > shown ? `${text.slice(0, shown)}…` : text;
}

/** Path and query, without the values of parameters that are named like a credential. */
export function redactUrl(url: URL, known: Iterable<string>): string {
  const query = [...url.searchParams].map(([name, value]) => `${name}=${secretName.test(name) ? hidden : value}`).join('&');
  return redactText(url.pathname + (query && `?${query}`), known);
}

function walk(value: unknown, known: readonly string[]): unknown {
  if (typeof value === 'string') return redactText(value, known);
  if (Array.isArray(value)) return value.map((one) => walk(one, known));
  if (typeof value !== 'object' || value === null) return value;
  const all = Object.entries(value);
  // A container's variable has its name beside its value.
  const variable = all.some(([key, of]) => key === 'name' && typeof of === 'string' && secretName.test(of));
  return Object.fromEntries(
    all.map(([key, of]) => {
      const secret = payload.has(key) || (typeof of === 'string' && (secretName.test(key) || (variable && key === 'value')));
      return [redactText(key, known), secret ? hidden : walk(of, known)];
    }),
  );
}
