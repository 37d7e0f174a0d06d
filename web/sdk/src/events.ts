// Frames to Kubecast's events. What the server says is checked as far as the SDK relies on it, so
// that the rest of the code can trust the types.

import { isJsonObject, parse, text, type JsonObject, type KubeObject } from './object.ts';
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
export class UnreadableFrame extends Error {}

/** Reads a frame; throws an {@link UnreadableFrame}. */
export function decodeFrame(frame: Frame): StreamEvent {
  const dot = frame.event.indexOf('.');
  const watch = dot === -1 ? '' : frame.event.slice(0, dot);
  const type = frame.event.slice(dot + 1);
  const told = { watch, id: frame.id };
  switch (type) {
    case 'added':
    case 'modified':
    case 'deleted':
      return { ...told, type, object: objectOf(frame) };
    case 'patched': {
      const data = jsonOf(frame);
      const uid = stringOf(frame, data, 'uid');
      return { ...told, type, uid, resourceVersion: stringOf(frame, data, 'resourceVersion'), patch: partOf(frame, data, 'patch') };
    }
    case 'synced':
    case 'bookmark':
      return { ...told, type, resourceVersion: text(jsonOf(frame).resourceVersion) };
    case 'reset': {
      const data = jsonOf(frame);
      return { ...told, type, reason: text(data.reason), data };
    }
    case 'goodbye':
      return { ...told, type, reason: text(jsonOf(frame).reason) };
    case 'stale':
    case 'live': {
      const data = jsonOf(frame);
      return { ...told, type, since: timeOf(data.since), reason: text(data.reason) };
    }
    case 'narrowed':
    case 'widened': {
      const { all, namespaces, names } = jsonOf(frame);
      if (all !== true && !Array.isArray(namespaces)) throw unreadable(frame, 'no namespaces');
      return { ...told, type, namespaces: all === true ? undefined : textsOf(namespaces), names: listsOf(names) };
    }
    case 'expiring':
      return { ...told, type, at: timeOf(jsonOf(frame).at) };
    default:
      return { ...told, type: 'unknown', name: type, data: frame.data };
  }
}

function unreadable(frame: Frame, what: string): UnreadableFrame {
  return new UnreadableFrame(`event ${frame.event}: ${what}`);
}

function jsonOf(frame: Frame): JsonObject {
  const data = parse(frame.data);
  if (!data) throw unreadable(frame, 'data is no JSON object');
  return data;
}

function objectOf(frame: Frame): KubeObject {
  const data = jsonOf(frame);
  const metadata = partOf(frame, data, 'metadata');
  stringOf(frame, metadata, 'uid');
  stringOf(frame, metadata, 'name');
  return data as unknown as KubeObject;
}

function partOf(frame: Frame, data: JsonObject, key: string): JsonObject {
  const value = data[key];
  if (!isJsonObject(value)) throw unreadable(frame, `no ${key}`);
  return value;
}

function stringOf(frame: Frame, data: JsonObject, key: string): string {
  const value = data[key];
  if (typeof value !== 'string') throw unreadable(frame, `no ${key}`);
  return value;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : [];
}

function listsOf(value: unknown): Record<string, string[]> {
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, list]) => [key, textsOf(list)]));
}

// Reasons and times are told to people; a missing one is no reason to break the stream.
function timeOf(value: unknown): number {
  const time = Date.parse(text(value));
  return Number.isNaN(time) ? Date.now() : time;
}
