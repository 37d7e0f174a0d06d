// Frames to Kubecast's events. What the server says is checked as far as the SDK relies on it, so
// that the rest of the code can trust the types.

import { Lost } from './lost.ts';
import { objectOf, parse, text, type JsonObject, type KubeObject } from './object.ts';
import type { Frame } from './parser.ts';

interface Told {
  /** The watch's name on `/stream`; empty on a single stream, and for what concerns the connection. */
  readonly watch: string;
  /** The position after this event; opaque. */
  readonly id: string;
}

/** A change, or the snapshot's `added`. Consumers upsert: a catch-up may tell either of the two. */
export interface ObjectEvent extends Told {
  readonly type: 'added' | 'modified' | 'deleted';
  readonly object: KubeObject;
}

/** An object has changed by a merge patch. */
export interface PatchedEvent extends Told {
  readonly type: 'patched';
  readonly uid: string;
  readonly resourceVersion: string;
  /** RFC 7386. */
  readonly patch: JsonObject;
}

/** A snapshot is complete. */
export interface SyncedEvent extends Told {
  readonly type: 'synced';
  /** Empty of histories and logs. */
  readonly resourceVersion: string;
}

/** Nothing has changed, and the position is further on. */
export interface BookmarkEvent extends Told {
  readonly type: 'bookmark';
  /** Empty of histories and logs. */
  readonly resourceVersion: string;
}

/** What was told is void: a snapshot follows. */
export interface ResetEvent extends Told {
  readonly type: 'reset';
  readonly reason: string;
  /** All that was said; of logs, the container of which lines are missing. */
  readonly data: JsonObject;
}

/** The gateway's own watch on the API server is lost, or is back. */
export interface FreshnessEvent extends Told {
  readonly type: 'stale' | 'live';
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly reason: string;
}

/** What the caller may see; told at the beginning if that is not all that was asked for, and when it changes. */
export interface VisibilityEvent extends Told {
  readonly type: 'narrowed' | 'widened';
  /** The namespaces of which everything is visible now; undefined: everything is everywhere. */
  readonly namespaces: readonly string[] | undefined;
  /** Single objects that are visible besides, by namespace; under the empty one those visible in any, or in none. */
  readonly names: Readonly<Record<string, readonly string[]>>;
}

/** The token ends soon: the stream wants a new one. */
export interface ExpiringEvent extends Told {
  readonly type: 'expiring';
  /** When the token ends, in milliseconds since the epoch. */
  readonly at: number;
}

/** The gateway ends the stream, and says why. */
export interface GoodbyeEvent extends Told {
  readonly type: 'goodbye';
  readonly reason: string;
}

/** An event of a server newer than this SDK. */
export interface UnknownEvent extends Told {
  readonly type: 'unknown';
  readonly name: string;
  readonly data: string;
}

/** What a stream says. */
export type StreamEvent =
  | ObjectEvent
  | PatchedEvent
  | SyncedEvent
  | BookmarkEvent
  | ResetEvent
  | FreshnessEvent
  | VisibilityEvent
  | ExpiringEvent
  | GoodbyeEvent
  | UnknownEvent;

/** A frame whose data is not what its event promises. Skipping it could lose a change in silence. */
export class UnreadableFrame extends Lost {
  constructor(message: string) {
    super('unreadable', message);
  }
}

/** Reads a frame; throws an {@link UnreadableFrame}. */
export function decodeFrame(frame: Frame): StreamEvent {
  const { event, id } = frame;
  const dot = event.indexOf('.');
  const type = event.slice(dot + 1);
  const told = { watch: event.slice(0, Math.max(dot, 0)), id };
  const promised = <T>(value: T | false | undefined, what: string): T => {
    if (!value) throw new UnreadableFrame(`event ${event}: no ${what}`);
    return value;
  };
  const json = (): JsonObject => promised(parse(frame.data), 'object');
  const part = (data: JsonObject, key: string): JsonObject => promised(objectOf(data[key]), key);
  const string = (data: JsonObject, key: string): string => promised(text(data[key]), key);
  const texts = (value: unknown): string[] => promised(Array.isArray(value) && (value.filter(text) as string[]), 'names');
  switch (type) {
    case 'added':
    case 'modified':
    case 'deleted': {
      const object = json();
      const metadata = part(object, 'metadata');
      string(metadata, 'uid');
      string(metadata, 'name');
      return { ...told, type, object: object as unknown as KubeObject };
    }
    case 'patched': {
      const data = json();
      return { ...told, type, uid: string(data, 'uid'), resourceVersion: string(data, 'resourceVersion'), patch: part(data, 'patch') };
    }
    case 'synced':
    case 'bookmark':
      return { ...told, type, resourceVersion: text(json().resourceVersion) };
    case 'reset': {
      const data = json();
      return { ...told, type, reason: text(data.reason), data };
    }
    case 'goodbye':
      return { ...told, type, reason: text(json().reason) };
    case 'stale':
    case 'live': {
      const { since, reason } = json();
      return { ...told, type, since: timeOf(since), reason: text(reason) };
    }
    case 'narrowed':
    case 'widened': {
      const { all, namespaces, names } = json();
      const some = Object.entries(names ?? {}).map(([namespace, of]) => [namespace, texts(of)]);
      return { ...told, type, namespaces: all === true ? undefined : texts(namespaces), names: Object.fromEntries(some) as VisibilityEvent['names'] };
    }
    case 'expiring':
      return { ...told, type, at: timeOf(json().at) };
    default:
      return { ...told, type: 'unknown', name: type, data: frame.data };
  }
}

// Reasons and times are told to people; a missing one is no reason to break the stream.
const timeOf = (value: unknown): number => Date.parse(text(value)) || Date.now();
