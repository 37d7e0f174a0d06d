// What the mock's containers write: lines, and the runs to which they belong; see "Logs" in the wire contract.

import type { KubeObject } from '@kubecast/sdk';
import type { MockCluster } from './cluster.ts';
import { BadQuery, heartbeatOf, selectsBy, whole } from './query.ts';
import type { ToldWatch } from './stream.ts';
import { MockLog, type Entry } from './told.ts';

/** Of which container something is said. */
export interface OfContainer {
  readonly namespace?: string;
  readonly container?: string;
}

export interface Line {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly time: string;
  readonly text: string;
}

/** Whose logs are asked for. */
export interface LogsOf {
  /** Of a pod, the pod; of an owner, what is at its path; of neither all that are selected. */
  readonly pod?: string | undefined;
  readonly owner?: (() => KubeObject | undefined) | undefined;
  readonly namespace?: string | undefined;
  readonly namespaces?: () => readonly string[] | undefined;
}

type Row = Line & { readonly restart: number };

export class MockLogs extends MockLog {
  readonly #cluster: MockCluster;
  /** The present run of each container, by namespace, pod and name. */
  readonly #runs = new Map<string, { restart: number; over: boolean }>();

  constructor(cluster: MockCluster) {
    super();
    this.#cluster = cluster;
  }

  /** A container writes a line. After its end that is one of its next run. */
  write(pod: string, text: string, { namespace = 'team-a', container = 'main', time = new Date().toISOString() }: OfContainer & { readonly time?: string } = {}): void {
    const run = this.#run(namespace, pod, container, time);
    this.add('line', { namespace, pod, container, time, text, restart: run.restart });
  }

  /** A run of a container ends. */
  end(pod: string, { namespace = 'team-a', container = 'main', exitCode = 0, reason = exitCode === 0 ? 'Completed' : 'Error' }: OfContainer & { readonly exitCode?: number; readonly reason?: string } = {}): void {
    const time = new Date().toISOString();
    const run = this.#run(namespace, pod, container, time);
    run.over = true;
    this.add('ended', { namespace, pod, container, restart: run.restart, reason, exitCode, time });
  }

  /** Lines of a container are missing, or none come for now, with the node's own words. */
  lose(pod: string, reason: 'expired' | 'slow' | 'clock' | 'unavailable', { namespace = 'team-a', container = 'main', message = '' }: OfContainer & { readonly message?: string } = {}): void {
    this.add('reset', { reason, namespace, pod, container, ...(message && { message }) });
  }

  /** Whether anything is known of a pod. */
  has(namespace: string, pod: string): boolean {
    return this.containersOf(namespace, pod).length > 0 || this.#podAt(namespace, pod) !== undefined;
  }

  containersOf(namespace: string, pod: string): string[] {
    const declared = (this.#podAt(namespace, pod) as { spec?: { containers?: readonly { name: string }[] } } | undefined)?.spec?.containers ?? [];
    const begun = [...this.#runs.keys()].map((key) => key.split('/')).filter(([at, name]) => at === namespace && name === pod);
    return [...new Set([...declared.map(({ name }) => name), ...begun.map(([, , name = '']) => name)])];
  }

  /** Whether the present run of a container has ended. */
  isOver(namespace: string, pod: string, container: string): boolean {
    return this.#runs.get(`${namespace}/${pod}/${container}`)?.over ?? false;
  }

  /** The lines of one run of a container, as the API server has them; undefined: there is no such run. */
  linesOf(namespace: string, pod: string, container: string, previous: boolean): readonly Row[] | undefined {
    const run = this.#runs.get(`${namespace}/${pod}/${container}`);
    const restart = (run?.restart ?? 0) - (previous ? 1 : 0);
    return restart < 0 ? undefined : this.entries.flatMap(({ type, data }) => (type === 'line' && isOf(data as Row, namespace, pod, container, restart) ? [data as Row] : []));
  }

  /** How a stream tells them. Throws {@link BadQuery}. */
  follow(query: URLSearchParams, of: LogsOf): ToldWatch & { readonly matches: (entry: Entry) => boolean; readonly first: () => readonly Entry[] } {
    const asked = askedOf(query, of.pod === undefined && of.owner === undefined);
    const belongs = this.#whose(of, asked.selects);
    let over = false;
    const matches = ({ type, data }: Entry): boolean => {
      const row = data as Row;
      return !over && belongs(row) && (asked.containers?.has(row.container) ?? true) && (type !== 'line' || row.text.includes(asked.search));
    };
    const first = (): readonly Entry[] => {
      const there = this.entries.filter(matches);
      const tails = new Map<string, number>();
      const lines = there.filter(({ type }) => type === 'line');
      const told = new Set(
        lines.reverse().filter(({ data }) => {
          const { namespace, pod, container, time } = data as Row;
          const key = `${namespace}/${pod}/${container}`;
          tails.set(key, (tails.get(key) ?? 0) + 1);
          return (tails.get(key) ?? 0) <= asked.tail && Date.parse(time) >= asked.since;
        }),
      );
      if (tails.size > 64) throw new BadQuery('more than 64 containers are selected', 422);
      return there.filter((entry) => entry.type !== 'line' || told.has(entry));
    };
    const synced = (told: readonly Pick<Entry, 'type'>[]): object => {
      over = !asked.follow;
      return { lines: told.filter(({ type }) => type === 'line').length };
    };
    return { log: this, limit: Infinity, mark: 'l-p', matches, first, synced, bookmark: {}, ends: !asked.follow, shape: withoutRun };
  }

  #run(namespace: string, pod: string, container: string, time: string): { restart: number; over: boolean } {
    const key = `${namespace}/${pod}/${container}`;
    const present = this.#runs.get(key);
    if (present && !present.over) return present;
    const run = { restart: present ? present.restart + 1 : 0, over: false };
    this.#runs.set(key, run);
    this.add('started', { namespace, pod, container, restart: run.restart, time });
    return run;
  }

  #podAt(namespace: string, name: string): KubeObject | undefined {
    return this.#cluster.list('pods', '').find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  }

  /** Which entries are of the pods that are meant, also of those that come later. */
  #whose({ pod, owner, namespace, namespaces }: LogsOf, selects: (pod: KubeObject) => boolean): (row: Row) => boolean {
    const seen = new Map<string, boolean>();
    const meant = (row: Row): boolean => {
      if (pod !== undefined) return row.pod === pod;
      const object = this.#podAt(row.namespace, row.pod);
      const key = `${row.namespace}/${row.pod}`;
      // What has gone belongs where it belonged.
      if (object) {
        const above = owner?.();
        seen.set(key, owner ? above !== undefined && this.#belongs(object, above) : selects(object));
      }
      return seen.get(key) ?? false;
    };
    return (row) => (namespace === undefined || row.namespace === namespace) && (namespaces?.()?.includes(row.namespace) ?? true) && meant(row);
  }

  /** By owner references, as Kubernetes' garbage collector. */
  #belongs(object: KubeObject, owner: KubeObject, depth = 8): boolean {
    const references = object.metadata.ownerReferences ?? [];
    if (references.some(({ uid }) => uid === owner.metadata.uid)) return true;
    if (depth === 0) return false;
    return references.some(({ uid }) => {
      const between = this.#cluster.find(uid);
      return between !== undefined && this.#belongs(between, owner, depth - 1);
    });
  }
}

const isOf = (row: Row, namespace: string, pod: string, container: string, restart: number): boolean =>
  row.namespace === namespace && row.pod === pod && row.container === container && row.restart === restart;

/** Of lines it is not told to which run they belong, and of runs not when. */
function withoutRun(data: object): object {
  const { restart, time, ...rest } = data as Partial<Row>;
  return rest.text === undefined ? { ...rest, ...(restart !== undefined && { restart }) } : { namespace: rest.namespace, pod: rest.pod, container: rest.container, time, text: rest.text };
}

interface LogQuery {
  readonly containers: ReadonlySet<string> | undefined;
  readonly tail: number;
  /** In milliseconds since the epoch. */
  readonly since: number;
  readonly search: string;
  readonly follow: boolean;
  readonly selects: (pod: KubeObject) => boolean;
}

const takes = ['container', 'tailLines', 'sinceTime', 'sinceSeconds', 'search', 'follow', 'heartbeat', 'lastEventId', 'last_event_id', 'ticket'];

function askedOf(query: URLSearchParams, ofPods: boolean): LogQuery {
  const unknown = [...query.keys()].find((key) => !takes.includes(key) && !(ofPods && ['labelSelector', 'fieldSelector'].includes(key)));
  if (unknown) throw new BadQuery(`${unknown}: unknown parameter of logs`);
  heartbeatOf(query.get('heartbeat'));
  const since = sinceOf(query);
  const follow = query.get('follow') ?? 'true';
  if (!['true', 'false'].includes(follow)) throw new BadQuery(`follow: ${JSON.stringify(follow)} is neither true nor false`);
  const tail = query.get('tailLines');
  const names = query.get('container');
  return {
    containers: names ? new Set(names.split(',')) : undefined,
    tail: tail ? whole('tailLines', tail, 0, 1_000_000) : since === undefined ? 1_000 : Infinity,
    since: since ?? -Infinity,
    search: query.get('search') ?? '',
    follow: follow === 'true',
    selects: selectsBy(query),
  };
}

/** From which second on, in milliseconds since the epoch; undefined: it was not said. */
export function sinceOf(query: URLSearchParams): number | undefined {
  const [time, seconds] = [query.get('sinceTime'), query.get('sinceSeconds')];
  if (time && seconds) throw new BadQuery('at most one of sinceTime and sinceSeconds may be given');
  if (seconds) return Date.now() - whole('sinceSeconds', seconds, 1) * 1_000;
  if (!time) return undefined;
  const at = /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : NaN;
  if (Number.isNaN(at)) throw new BadQuery(`sinceTime: ${JSON.stringify(time)} is no time`);
  return Math.floor(at / 1_000) * 1_000;
}
