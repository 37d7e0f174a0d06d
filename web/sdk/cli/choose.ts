// Which kinds are meant by `pods`, `jobs.batch` and `jobs.v1.batch`.

import { CommandError } from './error.ts';
import { compare, type Kind } from './openapi.ts';

/** A kind as it is asked for: kubectl's `plural`, `plural.group` or `plural.version.group`. */
export interface Wanted {
  readonly text: string;
  readonly plural: string;
  /** Undefined: the one that is served first. */
  readonly version: string | undefined;
  readonly group: string;
}

export function readWanted(text: string): Wanted {
  const match = /^([^.]+)(?:\.(v\d+(?:(?:alpha|beta)\d+)?))?(?:\.(.+))?$/.exec(text);
  if (!match?.[1]) throw new CommandError(`"${text}" is no kind: they are written as pods, jobs.batch or jobs.v1.batch`);
  return { text, plural: match[1], version: match[2], group: match[3] ?? '' };
}

/** Those that are asked for; of all, if none is, each in the version that is preferred. */
export function choose(kinds: readonly Kind[], wanted: readonly Wanted[]): Kind[] {
  if (wanted.length === 0) return kinds.filter((kind, n) => kinds.findIndex(({ group, plural }) => group === kind.group && plural === kind.plural) === n);
  const chosen = wanted.map((one) => find(kinds, one));
  return kinds.filter((kind) => chosen.includes(kind));
}

function find(kinds: readonly Kind[], { text, plural, version, group }: Wanted): Kind {
  // Of several versions the preferred one comes first.
  const found = kinds.find((kind) => kind.plural === plural && kind.group === group && (version === undefined || kind.version === version));
  if (found) return found;
  const elsewhere = [...new Set(kinds.filter((kind) => kind.plural === plural).map(fullName))];
  const beside = [...new Set(kinds.filter((kind) => kind.group === group).map(fullName))].sort(compare);
  const hint = elsewhere.length > 0 ? `there is ${elsewhere.join(', ')}` : beside.length > 0 ? `of that group there are ${beside.join(', ')}` : 'of that group there is none';
  throw new CommandError(`no kind is called "${text}"; ${hint}`);
}

const fullName = ({ plural, version, group }: Kind): string => [plural, version, group].filter(Boolean).join('.');

/** How many kinds are named when they are told. */
const mostNamed = 12;

/** What a file has by now, and how one comes to more. */
export function summaryOf(file: string, kinds: readonly Kind[], wanted: readonly Wanted[]): string {
  const names = kinds.map(({ plural, group }) => [plural, group].filter(Boolean).join('.'));
  const rest = names.length - mostNamed;
  const list = names.slice(0, mostNamed).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
  const more = wanted.length > 0 ? 'For others, add them to --kinds; for all that there are, leave it out.' : 'These are all that there are.';
  return `${file} has ${names.length === 1 ? 'one kind' : `${names.length} kinds`}: ${list}. ${more}`;
}
