// What containers write, as a source to follow; see "Logs" in wire.md.

import { text, type JsonObject, type KubeObject } from './object.ts';
import { pathOf, type Query, type Resource } from './resource.ts';
import { Sequence } from './sequence.ts';
import type { Source } from './store.ts';

interface OfContainer {
  /** Counts what was told since the page has looked, so it tells one entry from the next. */
  readonly number: number;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** A line that a container has written. */
export interface LogLine extends OfContainer {
  readonly type: 'line';
  /** RFC 3339, as the node wrote it. */
  readonly time: string;
  readonly text: string;
  /** It was longer than is told. */
  readonly cut: boolean;
}

/** A run of a container begins, or has ended and all of it was told. */
export interface LogRun extends OfContainer {
  readonly type: 'started' | 'ended';
  /** How many runs there were before. */
  readonly restart: number;
  /** Empty if the pod does not say. */
  readonly reason: string;
  readonly exitCode: number | undefined;
}

/** Lines of this container are missing here. */
export interface LogGap extends OfContainer {
  readonly type: 'reset';
  readonly reason: string;
  /** What the node says of it; empty if it says nothing. */
  readonly message: string;
}

/** What a log has, in its order. */
export type LogEntry = LogLine | LogRun | LogGap;

/** Whose logs, and from where on. */
export interface LogQuery {
  readonly namespace?: string | undefined;
  /** A pod, or an object to which pods belong. Without it all pods that the labels select. */
  readonly name?: string | undefined;
  readonly cluster?: string | undefined;
  /** A label selector, of pods. */
  readonly labels?: Query['labels'];
  /** Only these; undefined or empty: all. */
  readonly containers?: readonly string[] | undefined;
  /** So many lines of each container come first. */
  readonly tailLines?: number | undefined;
  /** Only lines that contain it. */
  readonly search?: string | undefined;
  /** How many of the newest entries are kept, 10,000 by default. It belongs to whoever asks first. */
  readonly keep?: number | undefined;
}

/**
 * ```ts
 * const log = kc.follow(logs(jobs, { namespace: 'team-a', name: 'train' }));
 * ```
 */
export function logs(resource: Resource<KubeObject>, query: LogQuery): Source<LogEntry> {
  const { namespace, name, cluster, labels, containers, tailLines, search, keep = 10_000 } = query;
  const path = pathOf(resource, { namespace, name, cluster, labels, search });
  const more = new URLSearchParams();
  if (containers?.length) more.set('container', containers.join());
  if (tailLines !== undefined) more.set('tailLines', String(tailLines));
  const rest = more.toString();
  let number = 0;
  const read = (type: string, data: JsonObject): LogEntry | undefined => {
    const of = { number, namespace: text(data.namespace), pod: text(data.pod), container: text(data.container) };
    switch (type) {
      case 'line':
        number++;
        return { ...of, type, time: text(data.time), text: text(data.text), cut: data.cut === true };
      case 'started':
      case 'ended':
        number++;
        return { ...of, type, restart: count(data.restart) ?? 0, reason: text(data.reason), exitCode: count(data.exitCode) };
      case 'reset':
        number++;
        return { ...of, type, reason: text(data.reason), message: text(data.message) };
      default:
        return undefined;
    }
  };
  return {
    path: `/logs${path}${rest && (path.includes('?') ? '&' : '?') + rest}`,
    sink: (changed) => new Sequence(changed, { read, keep, partial: true }),
  };
}

const count = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
