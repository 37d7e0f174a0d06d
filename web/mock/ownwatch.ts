// A watch in the form of Kubernetes, as kubectl and client-go ask for it: one JSON object a line. See "Kubernetes' own watch" in the wire contract.

import { isOf, type Change, type MockCluster } from './cluster.ts';
import { inForm, type Column, type Form } from './forms.ts';
import type { KubeObject } from '@kubecast/sdk';
import type { MockResponse } from './memory.ts';
import { queryOfOwnWatch, type OwnQuery } from './query.ts';
import { asBefore } from './status.ts';

/** What is watched. */
export interface OwnWatchOf {
  readonly resource: string;
  readonly group: string;
  /** Whether an object is below the path, and the caller may see it. */
  readonly below: (object: KubeObject) => boolean;
  readonly form: Form;
  readonly columns: readonly Column[];
}

export class OwnWatch {
  readonly token: string;
  readonly #cluster: MockCluster;
  readonly #of: OwnWatchOf;
  readonly #query: OwnQuery;
  readonly #response: MockResponse;
  readonly #include: string;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins it, and answers. Throws `BadQuery`. */
  constructor(cluster: MockCluster, of: OwnWatchOf, parameters: URLSearchParams, response: MockResponse, token: string) {
    this.#cluster = cluster;
    this.#of = of;
    this.#query = queryOfOwnWatch(parameters);
    this.#include = parameters.get('includeObject') ?? '';
    this.#response = response;
    this.token = token;
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
    response.on('close', () => this.#stop());
    this.#begin();
  }

  /** As when the process is killed. */
  cut(): void {
    this.#stop();
    this.#response.socket?.destroy();
  }

  /** It cannot go on: whoever watches has to list again. */
  expire(message = 'too old resource version'): void {
    this.#write('ERROR', { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: 'Expired', code: 410 });
    this.#end();
  }

  #begin(): void {
    const { from, timeout, bookmarks } = this.#query;
    const { version, floor } = this.#cluster;
    if (typeof from === 'number' && (from < floor || from > version)) {
      this.expire(from > version ? 'there is no such resource version' : undefined);
      return;
    }
    if (from === 'state' || from === 'stream') {
      for (const object of this.#cluster.list(this.#of.resource, this.#of.group)) if (this.#matches(object)) this.#tell('ADDED', object);
    } else if (from !== 'now') for (const change of this.#cluster.log) if (change.version > from) this.#onChange(change);
    if (from === 'stream' && bookmarks) this.#bookmark({ 'k8s.io/initial-events-end': 'true' });
    this.#cluster.watchers.add(this.#onChange);
    if (timeout > 0) this.#timer = setTimeout(() => this.#end(), timeout);
  }

  #matches(object: KubeObject): boolean {
    return this.#of.below(object) && this.#query.matches(object);
  }

  readonly #onChange = ({ version, resource, object, before, how }: Change): void => {
    if (resource !== this.#of.resource || !isOf(object, this.#of.group)) return;
    const was = before !== undefined && this.#matches(before);
    const is = how !== 'deleted' && this.#matches(object);
    if (is) this.#tell(was ? 'MODIFIED' : 'ADDED', object);
    else if (was) this.#tell('DELETED', asBefore(before, { ...before.metadata, resourceVersion: String(version) }));
  };

  #tell(type: string, object: KubeObject): void {
    const { form, columns } = this.#of;
    const written = { one: true, columns, include: this.#include };
    this.#write(type, form === 'whole' ? this.#query.shape(object) : inForm(form, [object], { resourceVersion: object.metadata.resourceVersion }, written));
  }

  #bookmark(annotations: object): void {
    const [first] = this.#cluster.list(this.#of.resource, this.#of.group);
    this.#write('BOOKMARK', { kind: first?.kind ?? '', apiVersion: first?.apiVersion ?? 'v1', metadata: { resourceVersion: String(this.#cluster.version), creationTimestamp: null, annotations } });
  }

  #write(type: string, object: object): void {
    this.#response.write(`${JSON.stringify({ type, object })}\n`);
  }

  #end(): void {
    this.#stop();
    this.#response.end();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#cluster.watchers.delete(this.#onChange);
  }
}
