// The states through which jobs went, as a source to follow; see "History" in wire.md.

import { text, type JsonObject, type KubeObject } from './object.ts';
import { pathOf, type Resource } from './resource.ts';
import { Sequence } from './sequence.ts';
import type { Source } from './store.ts';

export interface Transition {
  /** Counts the transitions of a cluster and kind, without gaps; larger than a number may be. */
  readonly seq: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Undefined of the first. */
  readonly from: string | undefined;
  readonly to: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** Found after the fact: there may have been states in between. */
  readonly late: boolean;
  readonly attempt: number;
  readonly reason: string;
  readonly message: string;
  readonly owner: string;
}

export interface TransitionQuery {
  readonly namespace?: string | undefined;
  /** All objects that ever had this name. */
  readonly name?: string | undefined;
  readonly cluster?: string | undefined;
  /** Only those to one of these states. */
  readonly states?: readonly string[] | undefined;
  /** Whose jobs; `me`: the caller's. */
  readonly owner?: string | undefined;
  /** So many of the newest come first, 100 by default, and 1,000 at most. */
  readonly limit?: number | undefined;
  /** How many of the newest are kept, 10,000 by default. It belongs to whoever asks first. */
  readonly keep?: number | undefined;
}

/**
 * ```ts
 * const past = kc.follow(transitions(jobs, { namespace: 'team-a', name: 'train' }));
 * ```
 */
export function transitions(resource: Resource<KubeObject>, query: TransitionQuery): Source<Transition> {
  const { namespace, name, cluster, states, owner, limit, keep = 10_000 } = query;
  const parameters = new URLSearchParams({ view: 'transitions' });
  if (states?.length) parameters.set('state', states.join());
  if (owner) parameters.set('owner', owner);
  if (limit !== undefined) parameters.set('limit', String(limit));
  const read = (type: string, data: JsonObject): Transition | undefined => (type === 'transition' ? readTransition(data) : undefined);
  return {
    path: `/history${pathOf(resource, { namespace, name, cluster })}?${parameters.toString()}`,
    sink: (changed) => new Sequence(changed, { read, keep, partial: false }),
  };
}

export function readTransition(data: JsonObject): Transition {
  return {
    seq: text(data.seq),
    namespace: text(data.namespace),
    name: text(data.name),
    uid: text(data.uid),
    from: text(data.from) || undefined,
    to: text(data.to),
    at: Date.parse(text(data.at)),
    late: data.late === true,
    attempt: typeof data.attempt === 'number' ? data.attempt : 0,
    reason: text(data.reason),
    message: text(data.message),
    owner: text(data.owner),
  };
}
